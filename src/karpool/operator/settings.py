"""All settings of `karpool run`."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from karpool.controller.ports import Intervals
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.settings import ExecutionSettings
from karpool.kube.election import LeaseTimes
from karpool.observability.logs import LogFormat, LogLevel
from karpool.observability.serving import Address
from karpool.observability.webhook_address import WebhookAddress
from karpool.operator.journal import JournalSettings
from karpool.packing.options import Options

METRICS_ADDRESS: Final = Address("127.0.0.1", 8080)
HEALTH_ADDRESS: Final = Address("127.0.0.1", 8081)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The lease for leader election; without a name this process always leads."""

    name: str | None = "karpool"
    namespace: str = "karpool"
    times: LeaseTimes = field(default_factory=LeaseTimes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of the controller; the defaults are those of the command line."""

    provider: str = "karpenter"
    """Who launches and terminates instances: a built-in provider, or one of an installed package."""
    dry_run: bool = True
    """Decide and report, but write nothing; `--act` ends that."""
    decisions: DisruptionSettings = field(default_factory=DisruptionSettings)
    own_repair_policies: bool = False
    """Whether the repair policies are the user's, so that the provider's do not count."""
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
    """A loop without an iteration, or one that restarts without a decision, for this long is not healthy."""
    explain_every: timedelta = timedelta(minutes=1)
    """How often the reasons of nodes are reported while nothing is decided."""
    webhook: WebhookAddress | None = None
    """Who is told of commands, failures and pauses."""
    shutdown_timeout: timedelta = timedelta(seconds=5)
    """How long a shutdown may take."""
