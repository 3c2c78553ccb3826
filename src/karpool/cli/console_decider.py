"""How the console decides about a cluster: as `karpool plan` with the same options does."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from karpool.cli.inputs.cluster_source import LoadedCluster, ReadCluster, decided_cluster
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cluster.node_groups import GroupOptions
from karpool.disruption.plan import Plan
from karpool.disruption.what_if.question import Question
from karpool.model.objects import Objects
from karpool.report.plans.document import PlanDocument


@dataclass(frozen=True, slots=True)
class ConsoleDecider:
    """The options of the command, for each question anew."""

    opener: CatalogOpener
    choices: Choices
    groups: GroupOptions
    moves: bool
    """Whether it is the time of each question that counts, or one for all."""
    notices: tuple[str, ...] = ()
    """What the input lacks."""
    source: tuple[str, ...] = ()
    """The options that name the cluster."""

    def __call__(self, objects: Objects) -> "DecidedByOptions":
        choices = replace(self.choices, now=datetime.now(UTC)) if self.moves else self.choices
        read = ReadCluster(objects, self.notices)
        cluster = decided_cluster(read, self.opener, choices, self.groups)
        return DecidedByOptions(cluster, choices, self.groups, self.source)


@dataclass(frozen=True, slots=True)
class DecidedByOptions:
    """A cluster with everything that decisions about it need."""

    cluster: LoadedCluster
    choices: Choices
    groups: GroupOptions
    source: tuple[str, ...]

    @property
    def subject(self) -> Question:
        cluster, choices = self.cluster, self.choices
        return Question(cluster.objects, cluster.catalog, cluster.settings, choices.options, choices.now)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.cluster.warnings

    def document(self, plan: Plan) -> PlanDocument:
        from karpool.cli.group_advice import with_group_advice
        from karpool.report.plans.assemble import plan_document

        written = plan_document(plan, self.warnings, self.cluster.catalog)
        return with_group_advice(written, self.cluster, self.choices, self.groups)
