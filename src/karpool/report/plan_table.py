"""A plan in a terminal: what it saves, its steps, and why the other nodes stay."""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from karpool.model.reasons import Reason
from karpool.report.document import NodeVerdict, PlanDocument, PlannedCommand, ReplacementPart, TotalsPart
from karpool.report.terminal import Cell, Column, Screen
from karpool.report.words import amount, count, per_hour, per_month, percent, share

_NAMES_SHOWN: Final = 3
_EXAMPLES: Final = 2
_PODS_SHOWN: Final = 20


class Judged(Protocol):
    """A node with the reasons why it stays."""

    @property
    def reasons(self) -> tuple[Reason, ...]: ...


N = TypeVar("N", bound=Judged)


def print_plan(plan: PlanDocument, screen: Screen, *, every_node: bool) -> None:
    """The whole plan, top down: totals, steps, nodes that stay, pods without a place."""
    _summary(plan, screen)
    _steps(plan.commands, screen)
    staying = [node for node in plan.nodes if node.verdict == "keep"]
    if every_node:
        _each_node(plan.nodes, screen)
    elif staying:
        _reasons(staying, screen)
    _unschedulable(plan, screen, every_pod=every_node)


def _summary(plan: PlanDocument, screen: Screen) -> None:
    before, after, arrow = plan.before, plan.after, screen.arrow
    screen.line(screen.text("Plan", "bold"), f" as of {plan.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage")
    columns = (Column(""), Column("before", "right"), Column(""), Column("after", "right"), Column("saved", "right"))
    saved = f"{per_hour(plan.savings.price_per_hour)} ({percent(plan.savings.percent)})"
    screen.table(
        columns,
        (
            ("nodes", f"{before.nodes:,}", arrow, f"{after.nodes:,}", f"{before.nodes - after.nodes:,}"),
            ("pods", f"{before.pods:,}", arrow, f"{after.pods:,}", ""),
            ("price", _price(before), arrow, _price(after), screen.text(saved, "bold green")),
            ("", "", "", "", per_month(plan.savings.price_per_hour)),
        ),
    )
    unpriced = max(before.unpriced_nodes, after.unpriced_nodes)
    if unpriced:
        screen.line(f"{count(unpriced, 'node')} of unknown price not counted; --catalog FILE can name prices.")


def _price(totals: TotalsPart) -> str:
    return per_hour(totals.price_per_hour) + (" + ?" if totals.unpriced_nodes and totals.price_per_hour else "")


def _steps(commands: tuple[PlannedCommand, ...], screen: Screen) -> None:
    if not commands:
        screen.heading("Nothing to do: no node can go, or be replaced by a cheaper one, at this time.")
        return
    screen.heading(count(len(commands), "step"))
    columns = (
        Column("step", "right"),
        Column("method"),
        Column("pods moved", "right"),
        Column("saved $/h", "right"),
        Column("what happens", wraps=True),
    )
    screen.table(columns, (_step(command, screen) for command in commands))


def _step(command: PlannedCommand, screen: Screen) -> tuple[Cell, ...]:
    what = [f"{command.decision} {_names(command.nodes)}"]
    what += [f"with {_replacement(new)}" for new in command.replacements]
    what += [f"pods under PDB {pdb} leave in {turns} waves" for pdb, turns in command.waves.items() if turns > 1]
    if command.ended:
        what.append(f"{count(len(command.ended), 'pod')} without another place, ended by the termination grace period:")
        what.append(f"  {_names(command.ended)}")
    saved = screen.text(amount(command.savings_per_hour), "green")
    return str(command.step), command.method, f"{len(command.placements):,}", saved, screen.lines(what)


def _replacement(new: ReplacementPart) -> str:
    kind = new.instance_types[0] if new.instance_types else "?"
    others = f" or {count(len(new.instance_types) - 1, 'other type')}" if len(new.instance_types) > 1 else ""
    return f"{new.name}: {kind}{others}, {new.capacity_type or '?'}, {per_hour(new.price_per_hour)}"


def _names(names: tuple[str, ...]) -> str:
    """All names when they are few, else the first ones and how many more."""
    if len(names) <= _NAMES_SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMES_SHOWN])} and {len(names) - _NAMES_SHOWN:,} more"


def _reasons(staying: list[NodeVerdict], screen: Screen) -> None:
    screen.heading(stay_heading(len(staying)))
    if any(len({reason.code for reason in node.reasons}) > 1 for node in staying):
        screen.line("A node with several reasons is counted under each.")
    columns = (
        Column("reason"),
        Column("nodes", "right"),
        Column("$/h", "right"),
        Column("for example", wraps=True),
    )
    screen.table(columns, (_group(code, nodes, screen) for code, nodes in group_by_code(staying)))


def stay_heading(number: int) -> str:
    """The heading above the reasons of nodes that stay."""
    return f"Why {count(number, 'node')} stay" + ("s" if number == 1 else "")


def group_by_code(nodes: Iterable[N]) -> list[tuple[str, list[N]]]:
    """Nodes under each of their reason codes, the code with most nodes first."""
    groups: dict[str, list[N]] = {}
    for node in nodes:
        for code in dict.fromkeys(reason.code for reason in node.reasons):
            groups.setdefault(code, []).append(node)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _group(code: str, nodes: list[NodeVerdict], screen: Screen) -> tuple[Cell, ...]:
    examples = []
    for node in nodes[:_EXAMPLES]:
        reason = next(entry for entry in node.reasons if entry.code == code)
        examples.append(f"{node.name}: {sentence(reason, node.name)}")
    return code, f"{len(nodes):,}", amount(_total(nodes)), screen.lines(examples)


def _total(nodes: list[NodeVerdict]) -> float | None:
    """The price of all these nodes, unknown as soon as one is."""
    prices = [node.price_per_hour for node in nodes if node.price_per_hour is not None]
    return sum(prices) if len(prices) == len(nodes) else None


def sentence(reason: Reason, node: str = "") -> str:
    """The reason's message, led by the object it is about unless that is the node itself or named already."""
    name = reason.object.rpartition(" ")[2]
    named = not name or name in reason.message or reason.object == f"Node {node}"
    return reason.message if named else f"{reason.object}: {reason.message}"


def _each_node(nodes: tuple[NodeVerdict, ...], screen: Screen) -> None:
    screen.heading(f"All {count(len(nodes), 'node')}")
    columns = (Column("node"), Column("verdict"), Column("why", wraps=True))
    screen.table(columns, (_node(node, screen) for node in nodes))


def _node(node: NodeVerdict, screen: Screen) -> tuple[Cell, ...]:
    used = node.utilisation
    facts = (
        node.name,
        f"  {node.node_pool or 'no pool'}, {node.instance_type or '?'}, {per_hour(node.price_per_hour)}",
        f"  {count(node.pods, 'pod')}, cpu {share(used.get('cpu'))}, memory {share(used.get('memory'))}",
    )
    verdict = node.verdict if node.step is None else f"{node.verdict}, step {node.step}"
    why = (f"{reason.code}: {sentence(reason, node.name)}" for reason in node.reasons)
    return screen.lines(facts), verdict, screen.lines(why)


def _unschedulable(plan: PlanDocument, screen: Screen, *, every_pod: bool) -> None:
    pods = plan.unschedulable
    if not pods:
        return
    screen.heading(f"{count(len(pods), 'pending pod')} that no node of today can take")
    shown = pods if every_pod else pods[:_PODS_SHOWN]
    rows = ((entry.pod, screen.lines(sentence(reason) for reason in entry.reasons)) for entry in shown)
    screen.table((Column("pod"), Column("why", wraps=True)), rows)
    if len(shown) < len(pods):
        screen.line(f"and {len(pods) - len(shown):,} more")
