"""One pod in a terminal: why it is where it is or waits, where it could be, and why not on the other nodes."""

from karpool.packing.refusal_messages import NODES
from karpool.report.formatting import count, names_of
from karpool.report.plans.pod_document import PodDocument
from karpool.report.terminal import Screen, right, wrapped


def print_pod(pod: PodDocument, screen: Screen) -> None:
    """Everything about one pod."""
    screen.line(screen.text(f"Pod {pod.name}", "bold"), f" as of {pod.time:%Y-%m-%d %H:%M:%S} UTC")
    screen.line(f"{pod.workload}; {f'runs on node {pod.node}' if pod.node else 'waits for a node'}.")
    if pod.daemon:
        screen.line("It is of a DaemonSet: it comes and goes with its node.")
        return
    for text in pod_words(pod):
        screen.line(text)
    others = tuple(name for name in pod.nodes if name != pod.node)
    beside = pod.fits - (pod.node in pod.nodes)
    if others:
        screen.heading(f"{count(beside, 'other node' if pod.node else 'node')} would take it")
        screen.line(f"{names_of(others)}.")
    if pod.refusals:
        screen.heading("Why not on the others" if pod.fits else "Why nowhere else" if pod.node else "Why it waits")
        rows = (
            (f"{entry.count:,}" if entry.what == NODES else "", _who(entry.what, entry.count), entry.detail)
            for entry in pod.refusals
        )
        screen.table((right(""), "", wrapped("why")), rows)


def _who(what: str, number: int) -> str:
    return count(number, "node").partition(" ")[2] if what == NODES else what


def pod_words(pod: PodDocument) -> tuple[str, ...]:
    """What keeps a pod where it is, and where it would go if it were placed anew."""
    if pod.held:
        stays = f"It may not be moved: {pod.held}."
    elif pod.blocked:
        stays = f"It may not be evicted now: {pod.blocked}."
    else:
        stays = "Nothing forbids to move it."
    return (*([stays] if pod.node else []), _would_go(pod))


def _would_go(pod: PodDocument) -> str:
    anew = "If it were placed anew now" if pod.node else "Placed now"
    if pod.would is not None:
        return f"{anew}, it would {'come to the same node' if pod.would == pod.node else f'go to {pod.would}'}."
    launch = f"; {pod.new_node_of} could launch one for it" if pod.new_node_of else " and no pool could launch one"
    return f"{anew}, no node that exists would take it{launch}."
