"""Everything that `karpool run` may be told, in one value."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from karpool.controller.ports import Intervals
from karpool.disruption.settings import DisruptionSettings as DecisionSettings
from karpool.execution.settings import ExecutionSettings
from karpool.kube.election import LeaseTimes
from karpool.observability.logs import LogFormat, LogLevel
from karpool.observability.serving import Address
from karpool.operator.journal import LARGEST, OLD_FILES
from karpool.packing.options import Options

METRICS_ADDRESS: Final = Address("127.0.0.1", 8080)
HEALTH_ADDRESS: Final = Address("127.0.0.1", 8081)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The lease that says who leads; without a name this process leads without asking."""

    name: str | None = "karpool"
    namespace: str = "karpool"
    times: LeaseTimes = field(default_factory=LeaseTimes)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """Where decisions are written down; without a path they are not."""

    path: Path | None = None
    largest: int = LARGEST
    old_files: int = OLD_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of the controller; where the command line has an option for one, the default is the same."""

    provider: str = "karpenter"
    """Who makes and ends machines: the name of a file in `karpool.operator.providers`."""
    dry_run: bool = False
    decisions: DecisionSettings = field(default_factory=DecisionSettings)
    options: Options = field(default_factory=Options)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    intervals: Intervals = field(default_factory=Intervals)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    metrics_address: Address | None = METRICS_ADDRESS
    health_address: Address | None = HEALTH_ADDRESS
    log_format: LogFormat = LogFormat.JSON
    log_level: LogLevel = LogLevel.INFO
    stalled_after: timedelta = timedelta(minutes=2)
    """A loop that has not turned for this long is not healthy."""
    explain_every: timedelta = timedelta(minutes=1)
    """How often nodes are told why they stay while nothing is decided."""
    goodbye: timedelta = timedelta(seconds=5)
    """How long the end may take, once asked for."""
