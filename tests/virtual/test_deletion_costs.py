"""A scale-down empties the nodes that are to go, where pods say so, and what was written goes again."""

from dataclasses import replace

from tests.virtual.worlds import CATALOG, HOUR, scenario

from karpool.disruption.settings import PREFIX
from karpool.execution import actions as a
from karpool.model.deletion_cost import has_own_cost
from karpool.model.labels import OWN_DELETION_COST, POD_DELETION_COST
from karpool.model.pod import Pod
from karpool.virtual.changes import with_annotation
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, Policy

# Two pods fill a node; half of the pods go after half an hour.
STORY = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
    disruption: {consolidateAfter: 5m, budgets: [{nodes: "100%"}]}
workloads:
- name: web
  cpu: 1800m
  memory: 1Gi
  replicas: {base: 16, steps: [{after: 30m, value: 8}]}
scheduler: LeastAllocated
"""


class Story:
    """The cluster of the story, and what was asked of it."""

    def __init__(self, *, managed: bool) -> None:
        policy = Policy(decisions=Decisions(search=PREFIX, pod_deletion_costs=managed))
        self.cluster = VirtualCluster(scenario(STORY, pools=""), CATALOG, policy=policy, seed=0)
        self.actions: list[a.Action] = []
        self.cluster.actuator.observers.append(self.actions.append)

    def run(self, until: float) -> "Story":
        self.cluster.run(until)
        return self

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.cluster.store.pods if pod.active]

    def count(self, kind: type[a.Action]) -> int:
        return sum(isinstance(action, kind) for action in self.actions)


def test_a_scale_down_empties_nodes_so_that_no_pod_has_to_be_evicted() -> None:
    managed, plain = Story(managed=True).run(HOUR), Story(managed=False).run(HOUR)
    for story in (managed, plain):
        assert (len(story.cluster.store.nodes), len(story.pods)) == (4, 8)
    assert managed.count(a.EvictPod) == 0
    assert plain.count(a.EvictPod) > 0
    assert plain.count(a.SetDeletionCost) == 0


def test_a_cost_of_somebody_else_stays_and_those_of_karpool_go_when_it_is_switched_off() -> None:
    story = Story(managed=True).run(HOUR / 4)
    theirs = story.pods[0]
    story.cluster.store.pods.put(with_annotation(theirs, POD_DELETION_COST, "9"))
    story.run(HOUR / 3)
    pods = {pod.key: pod.metadata.annotations for pod in story.pods}
    assert pods.pop(theirs.key)[POD_DELETION_COST] == "9"
    assert all(map(has_own_cost, pods.values()))
    controller = story.cluster.controller
    controller.stop()
    controller.settings = replace(controller.settings, pod_deletion_costs=False)
    controller.start()
    story.run(HOUR / 2 - 1)
    kept = {pod.key: pod.metadata.annotations for pod in story.pods}
    assert kept.pop(theirs.key)[POD_DELETION_COST] == "9"
    assert not any({POD_DELETION_COST, OWN_DELETION_COST} & notes.keys() for notes in kept.values())


def test_nothing_is_written_again_while_nothing_changes() -> None:
    story = Story(managed=True).run(HOUR / 4)
    written = story.count(a.SetDeletionCost)
    story.run(HOUR / 2 - 1)
    assert written > 0
    assert story.count(a.SetDeletionCost) == written
