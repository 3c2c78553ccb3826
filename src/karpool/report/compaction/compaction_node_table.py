"""One node of the compactor in a terminal: its requests, its mark, what it waits for, what keeps it, and its pods."""

from collections.abc import Iterator
from datetime import datetime

from karpool.compaction.reasons import CompactionReasonCode
from karpool.disruption.reasons import clock
from karpool.report.compaction.compaction_node_document import (
    CompactionNode,
    ExplainedPart,
    PodPart,
    UsePart,
    WaitsPart,
)
from karpool.report.formatting import age, count, ratio, resource, sentence
from karpool.report.terminal import Cell, Screen, right, wrapped


def print_compaction_node(document: CompactionNode, screen: Screen) -> None:
    _facts(document, screen)
    _uses(document.node, screen)
    _lines("It still waits", list(_waits(document.node.waits_for, document.time)), screen)
    _reasons(document.node, screen)
    _lines(
        "What may keep the autoscaler from removing it",
        [sentence(reason, document.node.name) for reason in document.node.warnings],
        screen,
    )
    _pods(document.node.pods, screen)


def _facts(document: CompactionNode, screen: Screen) -> None:
    node = document.node
    verdict = "would be drained" if node.change == "drain" else "is on its way out" if node.in_progress else "stays"
    screen.line(screen.text(f"Node {node.name} {verdict}", "bold"), f" as of {document.time:%Y-%m-%d %H:%M:%S} UTC")
    screen.line(f"pool {node.pool or 'none'}, age {age(node.age_seconds)}, {_state(node, document.time)}")
    waits = node.waits_for
    if waits.underutilized is not None:
        screen.line(
            f"under-used in its pool: {waits.underutilized}; needed for a scale-down: {waits.underutilized_needed}"
        )


def _state(node: ExplainedPart, now: datetime) -> str:
    """The node's mark and since when, or how far its scale-down is."""
    if node.in_progress:
        since = "" if node.in_progress_since is None else f" since {clock(node.in_progress_since, now)}"
        empty = "" if node.drained_at is None else f", empty since {clock(node.drained_at, now)}"
        return f"scale-down in progress{since}{empty}"
    if node.change == "unmark":
        return "marked, but loses its mark now"
    if not node.marked or node.marked_at is None:
        return "not marked"
    return "would be marked now" if node.change == "mark" else f"marked since {clock(node.marked_at, now)}"


def _uses(node: ExplainedPart, screen: Screen) -> None:
    screen.heading(f"Under-used: {_judged(node)} (requests, not usage)")
    numbers = ("requested", "allocatable", "ratio", "limit")
    screen.table(
        ("resource", *(right(title) for title in numbers)), (_use("cpu", node.cpu), _use("memory", node.memory))
    )


def _judged(node: ExplainedPart) -> str:
    """Whether the node is under-used, as far as that is asked of a node in its state."""
    codes = {reason.code for reason in node.reasons}
    if node.underutilized:
        return "yes"
    if codes & {CompactionReasonCode.CPU_OVER_LIMIT, CompactionReasonCode.MEMORY_OVER_LIMIT}:
        return "no"
    young = CompactionReasonCode.NODE_TOO_YOUNG in codes
    return "not judged yet, because it is younger than the minimum age" if young else "not judged"


def _use(name: str, use: UsePart) -> tuple[str, ...]:
    limit = "none" if use.limit is None else f"under {ratio(use.limit, 1)}"
    return name, resource(name, use.requested), resource(name, use.allocatable), ratio(use.ratio, 1), limit


def _waits(waits: WaitsPart, now: datetime) -> Iterator[str]:
    moments = (
        ("until it is old enough, at", waits.old_enough_at),
        ("until it has been marked for long enough, at", waits.marked_long_enough_at),
        ("because its last scale-down was given up, until", waits.left_alone_until),
        ("for a window of its pool, which opens at", waits.window_opens_at),
        ("for its pool, which may begin another scale-down at", waits.next_begin_at),
        ("for its pods to leave, at most until", waits.pods_leave_by),
        ("for the autoscaler, at most until", waits.removed_by),
    )
    yield from (f"{words} {clock(moment, now)}" for words, moment in moments if moment is not None)
    there, needed = waits.underutilized, waits.underutilized_needed
    if there is not None and needed is not None and there < needed:
        are = "is" if needed == 1 else "are"
        yield f"for more under-used nodes in its pool: {needed} {are} needed, {there} there"


def _lines(title: str, lines: list[str], screen: Screen) -> None:
    if lines:
        screen.heading(title)
        for line in lines:
            screen.line(f"  {line}")


def _reasons(node: ExplainedPart, screen: Screen) -> None:
    if not node.reasons:
        screen.heading("Nothing keeps it.")
        return
    title = "It is under way" if node.in_progress else f"{count(len(node.reasons), 'reason')} why it stays"
    screen.heading(title)
    columns = ("reason", wrapped("why"))
    screen.table(columns, ((reason.code, sentence(reason, node.name)) for reason in node.reasons))


def _pods(pods: tuple[PodPart, ...], screen: Screen) -> None:
    if not pods:
        screen.heading("No pods")
        return
    screen.heading(f"Its {count(len(pods), 'pod')}, if it is drained")
    columns = ("pod", "does", "to", wrapped("why"))
    screen.table(columns, (_pod(pod, screen) for pod in pods))


def _pod(pod: PodPart, screen: Screen) -> tuple[Cell, ...]:
    target = "" if pod.why else "nowhere"
    if pod.target is not None:
        target = f"{screen.arrow} {pod.target}"
    keeps = [] if pod.keeps is None else [f"keeps the node: {pod.keeps.message}"]
    nowhere = [] if pod.nowhere is None else [pod.nowhere.message]
    why = screen.lines([*([pod.why] if pod.why else []), *keeps, *nowhere])
    return pod.pod, "leaves" if pod.leaves else "stays", target, why
