"""The words of who pays, in a terminal and on a page."""

from typing import Final

from karpool.report.costs.costs_document import CostGroupPart, CostsPart

NO_LABEL: Final = "(no such label)"


def grouped_by(costs: CostsPart) -> str:
    """What a group is: a namespace, a workload, or the key of a label."""
    return costs.label or costs.by


def has_costs(entry: CostGroupPart) -> bool:
    """Whether an entry is worth a line."""
    return any(part.price_per_hour or part.unpriced for part in (entry.before, entry.after))
