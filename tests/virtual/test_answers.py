"""Whoever launches and terminates NodeClaims is gone for some minutes: no command begins that would need it."""

from dataclasses import replace

import msgspec
from tests.virtual.test_cool_downs import Timed
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.controller.ports import Duties
from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.virtual.cluster import VirtualCluster
from karpool.wire.duration import parse_duration

# In each of two pools a large pod goes, and what is left would fit on a smaller node; in the third a node is emptied.
POOLS = "pools:\n" + "".join(
    f"- metadata: {{name: {name}}}\n"
    "  spec:\n"
    "    template:\n"
    "      spec:\n"
    "        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]\n"
    '    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}\n'
    for name in ("first", "second", "third")
)


def _workload(name: str, pool: str, cpu: str, goes: str | None = None) -> str:
    curve = "" if goes is None else f", replicas: {{steps: [{{after: 0s, value: 1}}, {{after: {goes}, value: 0}}]}}"
    return f"{{name: {name}, cpu: {cpu}, spec: {{nodeSelector: {{karpenter.sh/nodepool: {pool}}}}}{curve}}}"


STORY = "workloads: [" + ", ".join(
    (
        _workload("web-1", "first", "1200m"),
        _workload("big-1", "first", "4", "20m"),
        _workload("web-2", "second", "1200m"),
        _workload("big-2", "second", "4", "22m"),
        _workload("idle", "third", "1", "22m"),
    )
)
STORY += "]"


class Heard(Timed):
    """Notes which commands start, and what is said of those who do not answer."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        self.begun: list[bool] = []
        """For each command, whether it needs a replacement."""

    def command_started(self, command: Command, identity: str) -> None:
        super().command_started(command, identity)
        self.begun.append(bool(command.replacements))

    def pass_finished(self, decision: Decision) -> None:
        self.messages += [stop.message for stop in decision.stops if stop.code == "NobodyAnswers"]


def beside(cluster: VirtualCluster) -> Heard:
    """Have the controller believe that somebody else launches; note what it does."""
    settings = cluster.controller.settings
    brakes = replace(settings.brakes, launched_by_others=True)
    cluster.controller.settings = replace(settings, brakes=brakes)
    heard = Heard(cluster)
    cluster.controller.observers.append(heard)
    return heard


def test_nothing_begins_that_needs_somebody_who_is_gone_and_all_goes_on_when_he_is_back() -> None:
    cluster, invariants = checked_cluster(STORY, pools=POOLS)
    heard = beside(cluster)
    cluster.run(1100)
    assert heard.messages == []
    controller, world, begun = cluster.controller, cluster.cloud.world, len(heard.begun)
    duties, execution = controller.duties, controller.execution
    # What another controller would do, nobody does: no launch, no condition, no drain.
    controller.stop()
    controller.duties = Duties(provisions=False, manages_lifecycle=False)
    controller.execution = replace(execution, terminates=False)
    cluster.cloud.world = replace(world, timings=msgspec.structs.replace(world.timings, launch=parse_duration("1h")))
    controller.start()
    cluster.run(1310)
    assert heard.begun[begun:] == [True]
    assert "nobody answers for it: only empty nodes go" in heard.messages[-1]
    cluster.run(1750)
    assert heard.begun[begun:] == [True, False], "the empty node goes, and nothing that needs a launch begins"
    assert "nobody terminates it: nothing goes" in heard.messages[-1]
    controller.stop()
    controller.duties, controller.execution, cluster.cloud.world = duties, execution, world
    controller.start()
    cluster.run(1.5 * HOUR)
    assert heard.begun[begun:].count(True) >= 2
    assert len(cluster.store.nodes) == 2
    invariants.expect_nothing_left_over()
