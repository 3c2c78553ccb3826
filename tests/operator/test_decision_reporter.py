"""What is reported of decisions: every pass is measured, explained when there is something new to say."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.disruption.scenarios import CATALOG, NOW, POOL, cluster, node

from karpool.cluster.snapshot import Snapshot
from karpool.controller.store import ClusterStore
from karpool.disruption.command import Cause, Command, Method, Replacement
from karpool.disruption.context import Policies
from karpool.disruption.decide import Decision, decide
from karpool.disruption.pdbs import PdbLimits
from karpool.execution.actions import RecordEvent
from karpool.model.requirements import Requirements
from karpool.observability.metrics import Metrics
from karpool.operator.decision_reporter import DecisionReporter
from karpool.operator.journal import Journal, JournalSettings
from karpool.packing.engine import Engine
from karpool.packing.options import Options

REPLACE = Command(
    method=Method.SINGLE_NODE,
    cause=Cause.UNDERUTILIZED,
    nodes=("a",),
    replacements=(Replacement("default", Requirements(()), ("small",), "on-demand", ("z1",), 0.1),) * 2,
    price=0.4,
)


def decision(reporter: DecisionReporter) -> Decision:
    """A pass over one node that is too full to go."""
    objects = cluster([node("a", "tiny", pods=[{"cpu": "900m"}])], pools=(POOL,))
    engine = Engine(Snapshot(objects), CATALOG, Options())
    return decide(engine, Policies({POOL.name: POOL}, PdbLimits(())), NOW, explain=reporter.wants_reasons)


class Reported:
    """A reporter, its clock, and all that it reported."""

    def __init__(self, path: Path | None = None, *, dry_run: bool = False) -> None:
        self.metrics = Metrics()
        self.events: list[RecordEvent] = []
        self.now = NOW
        self.reporter = DecisionReporter(
            ClusterStore(),
            self.metrics,
            Journal(JournalSettings(path=path)),
            record=self.events.append,
            clock=lambda: self.now,
            dry_run=dry_run,
            explain_every=timedelta(minutes=1),
        )

    def make_pass(self, *commands: Command, after: float = 0.0) -> None:
        """Make a pass so many seconds later."""
        self.now += timedelta(seconds=after)
        self.reporter.pass_started()
        decided = decision(self.reporter)
        assert decided.commands == ()
        self.reporter.pass_finished(replace(decided, commands=commands))

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karpool_{name}", labels) or 0.0


def test_every_pass_is_measured_and_a_fruitless_one_explained_once_a_minute() -> None:
    reported = Reported()
    reported.make_pass()
    assert sum(_rejections(reported).values()) >= 1
    assert [(event.kind, event.name, event.reason) for event in reported.events] == [("Node", "a", "Unconsolidatable")]
    reported.metrics.rejections(rejections={}, eligible={})
    reported.make_pass(after=10)
    assert _rejections(reported) == {}
    reported.make_pass(after=50)
    assert _rejections(reported) != {}
    assert reported.value("decision_seconds_count") == 3


def test_a_dry_run_that_decides_the_same_again_tells_it_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reported = Reported(path, dry_run=True)
    reported.make_pass(REPLACE)
    reported.make_pass(REPLACE, after=10)
    assert path.read_text().count('"kind":"Decision"') == 1
    assert reported.value("decision_seconds_count") == 2


def test_replacements_are_counted_as_created_for_the_reason_of_their_command() -> None:
    reported = Reported()
    reported.reporter.command_started(REPLACE)
    assert reported.value("nodeclaims_created_total", nodepool="default", reason="underutilized") == 2
    assert reported.value("saved_dollars_per_hour_total") == 0.4 - 2 * 0.1
    assert [event.reason for event in reported.events] == ["DisruptionBegan"]


def test_a_dry_run_begins_nothing() -> None:
    reported = Reported(dry_run=True)
    reported.reporter.command_started(REPLACE)
    assert reported.value("nodeclaims_created_total", nodepool="default", reason="underutilized") == 0
    assert reported.events == []


def _rejections(reported: Reported) -> dict[str, float]:
    families = {family.name: family for family in reported.metrics.registry.collect()}
    return {sample.labels["code"]: sample.value for sample in families["karpool_rejections"].samples}
