"""What a plan comes to once kube-scheduler chooses places, as a part of its document."""

from typing import Literal

from karpool.report.document_part import DocumentPart


class ForecastCounts(DocumentPart, frozen=True, kw_only=True):
    """The price of the nodes whose price is known, pods evicted, and nodes launched; None is not known."""

    price_per_hour: float | None
    evictions: int | None
    launches: int | None


class ForecastPart(DocumentPart, frozen=True, kw_only=True):
    """What a plan comes to once kube-scheduler chooses the places of pods, beside what the plan has.

    `reason`: why that is not known; empty where it is.
    """

    scheduler: Literal["LeastAllocated", "MostAllocated"]
    foreseen: bool
    planned: ForecastCounts
    expected: ForecastCounts
    reason: str = ""
