"""One node in a terminal: what becomes of it, its price and use, every rule, where its pods would go."""

from collections.abc import Iterator

from karpool.disruption.reasons import LEFT_ALONE
from karpool.report.formatting import age, amounts, count, names_of, per_hour, ratio, resource, sentence
from karpool.report.plans.document import AllowedUntil, ExplanationDocument, PodDestination, RuleResult, Unblock
from karpool.report.plans.explain_words import explain_words
from karpool.report.price_words import prices_words
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Cell, Screen, right, wrapped


def print_explanation(explanation: ExplanationDocument, screen: Screen) -> None:
    _facts(explanation, screen)
    _utilisation(explanation, screen)
    _rules(explanation, screen)
    if not any(rule.reason is not None and rule.reason.code in LEFT_ALONE for rule in explanation.rules):
        _pods(explanation.pods, screen)
    _replacements(explanation, screen)
    _unblock(explanation.unblock, screen)
    _calendar(explanation.calendar, screen)


def _facts(explanation: ExplanationDocument, screen: Screen) -> None:
    node = explanation.node
    screen.line(screen.text(f"Node {node.name}", "bold"), f" as of {explanation.time:%Y-%m-%d %H:%M:%S} UTC")
    for text in explain_words(explanation):
        screen.line(text)
    if explanation.prices:
        screen.line(prices_words(explanation.prices))
    screen.table(
        (
            right("price"),
            "pool",
            "type",
            TableColumn("zone", spare=1),
            TableColumn("capacity", spare=2),
            right("age", spare=3),
        ),
        (
            (
                per_hour(node.price_per_hour),
                node.node_pool or "-",
                node.instance_type or "?",
                node.zone or "?",
                node.capacity_type or "?",
                age(node.age_seconds),
            ),
        ),
    )


def _calendar(windows: tuple[AllowedUntil, ...], screen: Screen) -> None:
    if not windows:
        return
    screen.heading("What the budgets of its pool allow in the next days (UTC)")
    rows = [
        (f"{start:%a %d %b %H:%M}", f"{end:%a %d %b %H:%M}", "any" if allowed is None else str(allowed))
        for start, end, allowed in ((entry.start, entry.end, entry.allowed) for entry in windows)
    ]
    screen.table(("from", "to", right("nodes at once")), rows)


def _utilisation(explanation: ExplanationDocument, screen: Screen) -> None:
    screen.heading(f"{count(explanation.node.pods, 'pod')}: requests, not usage")
    columns = ("resource", right("requested"), right("allocatable"), right("ratio"), TableColumn("", spare=1))
    rows = (
        (name, resource(name, use.requested), resource(name, use.allocatable), ratio(use.ratio), screen.bar(use.ratio))
        for name, use in explanation.utilisation.items()
    )
    screen.table(columns, rows)


def _rules(explanation: ExplanationDocument, screen: Screen) -> None:
    rules, node = explanation.rules, explanation.node.name
    failed = sum(not rule.passed for rule in rules)
    screen.heading(f"Rules: {len(rules) - failed} of {len(rules)} let it go today")
    columns = ("", "rule", wrapped("why"))
    screen.table(columns, (_rule(rule, node, screen) for rule in rules))


def _rule(rule: RuleResult, node: str, screen: Screen) -> tuple[Cell, ...]:
    why = "" if rule.reason is None else f"{rule.reason.code}: {sentence(rule.reason, node)}"
    return screen.mark(passed=rule.passed), rule.rule, why


def _pods(pods: tuple[PodDestination, ...], screen: Screen) -> None:
    if not pods:
        screen.heading("No pod would have to move")
        return
    screen.heading(f"Where {count(len(pods), 'pod')} would go")
    screen.table(("pod", "to", wrapped("why")), _pod_rows(pods, screen))


def _pod_rows(pods: tuple[PodDestination, ...], screen: Screen) -> Iterator[tuple[Cell, ...]]:
    for pod in pods:
        target = screen.text("nowhere", "red") if pod.target is None else f"{screen.arrow} {pod.target}"
        yield pod.pod, target, "" if pod.reason is None else sentence(pod.reason)


def _replacements(explanation: ExplanationDocument, screen: Screen) -> None:
    new, group = explanation.replacements, explanation.group
    if new:
        screen.heading("Cheapest replacement" if len(new) == 1 else f"Cheapest replacements, {len(new)} nodes together")
        for part in new:
            where = ", ".join(text for text in (part.zone, part.capacity_type, part.node_pool) if text)
            screen.line(f"{part.name}: {part.instance_type} ({where}): {per_hour(part.price_per_hour)}")
    if group is not None:
        others = tuple(name for name in group.nodes if name != explanation.node.name)
        screen.heading(f"Not alone, but together with {names_of(others)}: saves {per_hour(group.savings_per_hour)}")
    elif new:
        prices = [part.price_per_hour for part in new]
        together = None if None in prices else sum(price or 0.0 for price in prices)
        today = per_hour(explanation.node.price_per_hour)
        screen.line(f"costs {per_hour(together)}; today's node {today}")


def _unblock(conditions: tuple[Unblock, ...], screen: Screen) -> None:
    if not conditions:
        return
    screen.heading("What would let it go")
    saved = amounts(entry.savings_per_hour for entry in conditions)
    rows = ((f"if {entry.condition}", text) for entry, text in zip(conditions, saved, strict=True))
    screen.table((wrapped(""), right("saves alone, today, $/h")), rows)
    screen.line("In a whole plan it may be worth more, less or nothing: `karpool blockers` says how much.")
