"""All rules over one history."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.robustness.checker.compaction import compaction
from tests.robustness.checker.ending import ending
from tests.robustness.checker.harm import harm
from tests.robustness.checker.lease import writes_without_lease
from tests.robustness.checker.nodes import budgets, protected_nodes, unexplained_deletions
from tests.robustness.checker.pace import pace
from tests.robustness.checker.pods import (
    disruption_budgets,
    do_not_disrupt,
    only_leaving_nodes,
    pods_of_deleted_nodes,
)
from tests.robustness.checker.rates import ledgers, rates
from tests.robustness.checker.records import Record
from tests.robustness.checker.stops import stopped
from tests.robustness.checker.violations import Violation
from tests.robustness.checker.world import World

Rule = Callable[[World], Iterator[Violation]]
RULES: Final[tuple[Rule, ...]] = (
    disruption_budgets,
    do_not_disrupt,
    only_leaving_nodes,
    pods_of_deleted_nodes,
    pace,
    budgets,
    protected_nodes,
    stopped,
    rates,
    ledgers,
    harm,
    compaction,
    unexplained_deletions,
    writes_without_lease,
    ending,
)


def check(records: Sequence[Record]) -> list[Violation]:
    """Everything that went wrong in a history, in the order in which it did."""
    world = World(records)
    found = [violation for rule in RULES for violation in rule(world)]
    return sorted(found, key=lambda violation: violation.revision)
