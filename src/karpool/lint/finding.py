"""Rules and what they find."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from karpool.model.objects import Objects

if TYPE_CHECKING:
    from karpool.lint.cluster import LintedCluster


class Severity(StrEnum):
    """An error keeps something from working at all; a warning costs money, time or nerves."""

    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """The higher, the worse."""
        return list(Severity).index(self)


class LintCode(StrEnum):
    """Stable names of rules."""

    EQUAL_WEIGHTS = "EqualWeights"
    DEAR_FAVOURITE = "DearFavourite"
    FEW_SPOT_TYPES = "FewSpotTypes"
    NO_KNOWN_TYPE = "NoKnownType"
    UNKNOWN_TYPES = "UnknownTypes"
    LIMIT_EXCEEDED = "LimitExceeded"
    BUDGET_NEVER_OPENS = "BudgetNeverOpens"
    BUDGET_TOO_SLOW = "BudgetTooSlow"
    PDB_NEVER_ALLOWS = "PdbNeverAllows"
    SEVERAL_PDBS = "SeveralPdbs"
    PROTECTED_FOREVER = "ProtectedForever"
    PROTECTION_EXPIRED = "ProtectionExpired"
    MISSING_REQUESTS = "MissingRequests"
    ONE_POD_PER_NODE = "OnePodPerNode"


@dataclass(frozen=True, slots=True)
class Remedy:
    """The cluster as it would be if a finding were put right, to see what it costs as it is."""

    apply: Callable[[Objects], Objects]
    budgets: bool = False
    """Whether disruption budgets count when the two are compared: only where the finding is about one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: the object, the field if there is one, and what is so.

    What it costs is known at once (`per_hour`, $/h), or by its `remedy`; with neither it is not about money, unless
    only the amount is unknown.
    """

    object: str
    message: str
    field: str = ""
    remedy: Remedy | None = None
    per_hour: float | None = None
    amount_unknown: bool = False

    @property
    def about_money(self) -> bool:
        return self.remedy is not None or self.per_hour is not None or self.amount_unknown

    @property
    def kind(self) -> str:
        return self.object.partition(" ")[0]

    @property
    def key(self) -> str:
        return self.object.partition(" ")[2]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name and title, why what it finds is bad, what to do about it, and how it is found."""

    code: LintCode
    severity: Severity
    title: str
    why: str
    action: str
    find: Callable[["LintedCluster"], Iterable[Finding]]
    manifests: bool = False
    """Whether it needs nothing but the manifests of pools and a catalogue, so that `validate` applies it, too."""
