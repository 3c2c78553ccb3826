"""A plan in a terminal: what it saves, its steps, and why the other nodes stay."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from karpool.disruption.reasons import clock
from karpool.report.costs.costs_table import print_costs
from karpool.report.formatting import amounts, count, names_of, per_hour, ratio, sentence
from karpool.report.groups.group_table import print_groups
from karpool.report.groups.suggestion_table import print_suggestions
from karpool.report.plans.document import NodeVerdict, PlanDocument, PlannedCommand, ReplacementPart
from karpool.report.plans.plan_words import nothing_words, plan_words, price_row, stop_words, unpriced_words
from karpool.report.reason_table import print_reasons, reason_lines
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Cell, Screen, right, wrapped

_PODS_SHOWN: Final = 20
_STEPS_SHOWN: Final = 20
_LONG: Final = 60


def print_plan(plan: PlanDocument, screen: Screen, *, every_node: bool) -> None:
    """The whole plan, top down: totals, steps, nodes that stay, pods that no node can take."""
    _summary(plan, screen)
    print_groups(plan.groups, plan.drains, screen)
    _steps(plan, screen, every_step=every_node)
    staying = [node for node in plan.nodes if node.verdict == "keep"]
    if every_node:
        _each_node(plan.nodes, screen, after="; those that stay: why, after the steps above" if plan.commands else "")
    elif staying:
        print_reasons(staying, screen, _total, after=" after the steps above" if plan.commands else "")
    _unschedulable(plan, screen, every_pod=every_node)
    if plan.suggestions is not None:
        print_suggestions(plan.suggestions, screen, groups=bool(plan.groups))
    for costs in plan.costs:
        print_costs(costs, screen, every_group=every_node)
    if screen.printed > _LONG:
        _in_all(plan, screen)


def _in_all(plan: PlanDocument, screen: Screen) -> None:
    """The summary once more, at the end of what has scrolled by."""
    before, after, arrow, price = plan.before, plan.after, screen.arrow, price_row(plan)
    screen.heading(
        f"In all: {before.nodes:,} {arrow} {after.nodes:,} nodes, {price.before} {arrow} {price.after},"
        f" {count(len(plan.commands), 'step')}"
    )


def _summary(plan: PlanDocument, screen: Screen) -> None:
    before, after, arrow = plan.before, plan.after, screen.arrow
    screen.line(screen.text("Plan", "bold"), f" as of {plan.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage")
    for text in stop_words(plan):
        screen.line(screen.text(text, "bold red"))
    # Where width lacks, what is saved is the last to go.
    columns = ("", right("before", spare=2), TableColumn("", spare=3), right("after", spare=1), right("saved"))
    price, waiting = price_row(plan), len(plan.unschedulable)
    then = waiting + len(plan.displaced)
    screen.table(
        columns,
        (
            ("nodes", f"{before.nodes:,}", arrow, f"{after.nodes:,}", f"{before.nodes - after.nodes:,}"),
            ("pods", f"{before.pods:,}", arrow, f"{after.pods:,}", ""),
            *([("pending", f"{waiting:,}", arrow, f"{then:,}", "")] if then else []),
            ("price", price.before, arrow, price.after, screen.text(price.saved, "bold green")),
            ("", "", "", "", price.saved_per_month),
        ),
    )
    for text in filter(None, (unpriced_words(plan), *plan_words(plan))):
        screen.line(text)


def _steps(plan: PlanDocument, screen: Screen, *, every_step: bool) -> None:
    commands = plan.commands
    if not commands:
        screen.heading(nothing_words(plan))
        return
    screen.heading(count(len(commands), "step"))
    now = plan.time if any(command.begins for command in commands) else None
    shown = commands if every_step else commands[:_STEPS_SHOWN]
    columns: list[str | TableColumn] = [
        right("step"),
        TableColumn("method", spare=2),
        right("pods moved", spare=1),
        right("saved $/h"),
        wrapped("what happens"),
    ]
    if now is not None:
        columns.insert(2, "can begin")
    saved = amounts(command.savings_per_hour for command in shown)
    screen.table(columns, (_step(command, text, screen, now) for command, text in zip(shown, saved, strict=True)))
    if len(shown) < len(commands):
        screen.line(f"and {len(commands) - len(shown):,} more; --all lists them, --output html draws them")


def _step(command: PlannedCommand, amount_saved: str, screen: Screen, now: datetime | None) -> tuple[Cell, ...]:
    """One line of steps; `now`: say when it can begin."""
    lines = [f"{command.decision} {names_of(command.nodes)}"]
    comes = "then its pool launches" if command.decision == "terminate-first" else "with"
    lines += [f"{comes} {text}" for text in _replacements(command.replacements)]
    lines += [f"pods under PDB {pdb} leave in {turns} waves" for pdb, turns in command.waves.items() if turns > 1]
    if command.ended:
        lines.append(f"{count(len(command.ended), 'pod')} with no other node, ended by the termination grace period:")
        lines.append(f"  {names_of(command.ended)}")
    if command.displaced:
        lines.append(f"{count(len(command.displaced), 'pod')} not held by that, put where room is left, if any is:")
        lines.append(f"  {names_of(command.displaced)}")
    saved = screen.text(amount_saved, "green")
    times = [] if now is None else ["?" if command.begins is None else clock(command.begins, now)]
    return str(command.step), command.method, *times, f"{len(command.placements):,}", saved, screen.lines(lines)


def _replacements(new: tuple[ReplacementPart, ...]) -> Iterator[str]:
    """A line for each new node; those that are alike share one."""
    for _, alike in groupby(new, key=lambda part: replace(part, name="")):
        parts = tuple(alike)
        each = "" if len(parts) == 1 else " each"
        yield f"{names_of(tuple(part.name for part in parts))}: {_type(parts[0])}{each}"


def _type(new: ReplacementPart) -> str:
    kind = new.instance_types[0] if new.instance_types else "?"
    others = f" or {count(len(new.instance_types) - 1, 'other type')}" if len(new.instance_types) > 1 else ""
    return f"{kind}{others}, {new.capacity_type or '?'}, {per_hour(new.price_per_hour)}"


def _total(nodes: list[NodeVerdict]) -> float | None:
    """The price of all these nodes, unknown as soon as one of them is."""
    prices = [node.price_per_hour for node in nodes if node.price_per_hour is not None]
    return sum(prices) if len(prices) == len(nodes) else None


def _each_node(nodes: tuple[NodeVerdict, ...], screen: Screen, after: str) -> None:
    screen.heading(f"All {count(len(nodes), 'node')}" + after)
    columns = ("node", TableColumn("verdict", spare=1), wrapped("why"))
    screen.table(columns, (_node(node, screen) for node in nodes))


def _node(node: NodeVerdict, screen: Screen) -> tuple[Cell, ...]:
    used = node.utilisation
    facts = (
        node.name,
        f"  {node.node_pool or 'no pool'}, {node.instance_type or '?'}, {per_hour(node.price_per_hour)}",
        f"  {count(node.pods, 'pod')}, cpu {ratio(used.get('cpu'))}, memory {ratio(used.get('memory'))}",
    )
    verdict = node.verdict if node.step is None else f"{node.verdict}, step {node.step}"
    return screen.lines(facts), verdict, reason_lines(node, screen)


def _unschedulable(plan: PlanDocument, screen: Screen, *, every_pod: bool) -> None:
    pods = plan.unschedulable
    if not pods:
        return
    screen.heading(f"{count(len(pods), 'pending pod')} that no node of today can take")
    shown = pods if every_pod else pods[:_PODS_SHOWN]
    rows = ((entry.pod, screen.lines(sentence(reason) for reason in entry.reasons)) for entry in shown)
    screen.table(("pod", wrapped("why")), rows)
    if len(shown) < len(pods):
        screen.line(f"and {len(pods) - len(shown):,} more")
