"""A plan in Markdown, for comments on pull requests and summaries of pipelines."""

from collections.abc import Iterator
from typing import Final

from karpool.report.formatting import amounts, count, names_of, sentence
from karpool.report.markdown import escaped, folded, table
from karpool.report.plans.document import PlanDocument, PlannedCommand
from karpool.report.plans.plan_words import plan_words, price_row, stop_words
from karpool.report.reason_table import COUNTED_TWICE, counted_twice, group_by_code

_STEPS_SHOWN: Final = 20


def plan_markdown(plan: PlanDocument) -> str:
    return "\n\n".join(_parts(plan))


def _parts(plan: PlanDocument) -> Iterator[str]:
    yield f"### Karpool plan as of {plan.time:%Y-%m-%d %H:%M:%S} UTC"
    yield from (f"**{escaped(text)}**" for text in stop_words(plan))
    yield _totals(plan)
    words = [*plan_words(plan), *plan.warnings]
    if words:
        yield "\n".join(f"- {escaped(text)}" for text in words)
    if plan.commands:
        yield folded(count(len(plan.commands), "step"), _steps(plan))
    staying = [node for node in plan.nodes if node.verdict == "keep"]
    if staying:
        yield folded(f"Why {count(len(staying), 'node')} stay{'s' if len(staying) == 1 else ''}", _reasons(plan))
    if plan.unschedulable:
        rows = [(escaped(pod.pod), escaped("; ".join(map(sentence, pod.reasons)))) for pod in plan.unschedulable]
        title = f"{count(len(rows), 'pending pod')} that no node of today can take"
        yield folded(title, table(("pod", "why"), rows[:_STEPS_SHOWN]))


def _totals(plan: PlanDocument) -> str:
    before, after, price = plan.before, plan.after, price_row(plan)
    saved, _, share = price.saved.rpartition(" (")
    rows = (
        ("nodes", f"{before.nodes:,}", f"{after.nodes:,}", f"{before.nodes - after.nodes:,}"),
        ("pods", f"{before.pods:,}", f"{after.pods:,}", ""),
        (
            "price",
            price.before,
            price.after,
            f"**{saved}** ({share}, {price.saved_per_month}",
        ),
    )
    return table(("", "before", "after", "saved"), rows, right=(1, 2, 3))


def _steps(plan: PlanDocument) -> str:
    shown = plan.commands[:_STEPS_SHOWN]
    saved = amounts(command.savings_per_hour for command in shown)
    rows = [
        (f"{command.step}", command.method, f"{len(command.placements):,}", money, escaped(_what(command)))
        for command, money in zip(shown, saved, strict=True)
    ]
    header = ("step", "method", "pods moved", "saved $/h", "what happens")
    more = len(plan.commands) - len(shown)
    return table(header, rows, right=(0, 2, 3)) + (f"\n\nand {more:,} more" if more else "")


def _what(command: PlannedCommand) -> str:
    new = [f"{part.name} ({part.instance_types[0] if part.instance_types else '?'})" for part in command.replacements]
    comes = "then its pool launches" if command.decision == "terminate-first" else "with"
    return f"{command.decision} {names_of(command.nodes)}" + (f" {comes} {names_of(new)}" if new else "")


def _reasons(plan: PlanDocument) -> str:
    staying = [node for node in plan.nodes if node.verdict == "keep"]
    groups = group_by_code(staying)
    rows = []
    for code, nodes in groups:
        example = next(reason for reason in nodes[0].reasons if reason.code == code)
        text = f"{nodes[0].name}: {sentence(example, nodes[0].name)}"
        rows.append((escaped(code), f"{len(nodes):,}", escaped(text)))
    listed = table(("reason", "nodes", "for example"), rows, right=(1,))
    return f"{COUNTED_TWICE}\n\n{listed}" if counted_twice(staying) else listed
