"""Commands that are decided while others wait to be decided again: none counts on nodes, room or budgets of another."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.virtual.invariants import Invariants
from tests.virtual.worlds import CATALOG, HOUR, scenario

from karpool.controller.observer import DecisionObserver
from karpool.disruption.budgets import allowed
from karpool.disruption.command import Cause, Command, Move
from karpool.disruption.settings import GLOBAL, PREFIX
from karpool.execution.tickets import commands_in_progress
from karpool.model.labels import NODEPOOL
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, Policy

NAMES = ("red", "green", "blue")


class InFlight(DecisionObserver):
    """Looks after every event whether commands that are under way or decided get in each other's way."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster, self.store = cluster, cluster.store
        self.most = 0
        """How many commands were decided and had not started, at most."""
        self.dropped: list[Command] = []
        self._started: list[Command] = []
        self._seen = 0
        self._going: set[str] = set()
        cluster.controller.observers.append(self)
        cluster.queue.observers.append(self._check)

    def command_started(self, command: Command, _identity: str) -> None:
        self._started.append(command)

    def command_dropped(self, command: Command, _reason: object, _in_a_row: int) -> None:
        self.dropped.append(command)

    def _check(self) -> None:
        if not self.cluster.controller.running:
            return
        numbered = self.cluster.controller._disruption._decided._decided
        decided = [entry.command for entry in numbered.values()]
        self.most = max(self.most, len(decided))
        under_way = [set(command.ticket.nodes) for command in commands_in_progress(self.store.claims)]
        leaving = [*under_way, *(set(command.nodes) for command in decided)]
        going = Counter(name for nodes in leaving for name in nodes)
        assert not going or max(going.values()) == 1, going
        for command in decided:
            goals = {move.target for move in command.moves}
            assert goals.isdisjoint(going), f"{command.nodes} count on room of {goals & going.keys()}"
        # What comes later may take room: each command is decided again for that.
        if numbered and max(numbered) > self._seen:
            self._seen = max(numbered)
            self._going = set(going)
            self._check_room(decided)
            self._check_budgets(decided, set(going))

    def _check_room(self, decided: list[Command]) -> None:
        for node in self.store.nodes:
            coming = [move for move in self._moves(decided) if move.target == node.name]
            if coming:
                pods = [pod for pod in self.store.pods if pod.spec.node_name == node.name and not pod.terminal]
                pods += [pod for move in coming if (pod := self._there(move)) is not None]
                for resource in ("cpu", "memory"):
                    taken = sum(effective_requests(pod)[resource].nano for pod in pods)
                    assert taken <= node.status.allocatable[resource].nano, f"{node.name} has not enough {resource}"

    def _moves(self, decided: list[Command]) -> Iterator[Move]:
        for command in (*self._started, *decided):
            yield from command.moves

    def _there(self, move: Move) -> Pod | None:
        """The pod of a move, as long as it is still to go; what comes in its place goes where the scheduler says."""
        pod = self.store.pods.get(move.pod)
        if pod is None or not pod.active or move.source not in self._going:
            return None
        return pod if pod.spec.node_name == move.source else None

    def _check_budgets(self, decided: list[Command], going: set[str]) -> None:
        for pool in self.store.pools:
            nodes = [node for node in self.store.nodes if node.metadata.labels.get(NODEPOOL) == pool.name]
            mine = {node.name for node in nodes if node.name in going or node.metadata.deletion_timestamp is not None}
            mine = {name for name in mine if not self._ended(name)}
            if any(node.name in command.nodes for command in decided for node in nodes):
                limit = allowed(pool, str(Cause.UNDERUTILIZED), len(nodes), 0, self.cluster.now).allowed
                assert len(mine) <= limit, f"{len(mine)} of {limit} nodes of pool {pool.name} go at once"

    def _ended(self, node: str) -> bool:
        claim = self.store.claims.get(node)
        return claim is not None and claim.is_true("InstanceTerminating")


def shrinking(budget: str, left: dict[str, int], *, search: str, seed: int = 0) -> tuple[VirtualCluster, InFlight]:
    """Three pools, each with a workload that nobody else has room for, which loses most of its pods."""
    pools = "".join(
        f"""
- metadata: {{name: {name}}}
  spec:
    template:
      metadata: {{labels: {{team: {name}}}}}
      spec:
        requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}]
    disruption: {{consolidateAfter: 30s, budgets: [{{nodes: "{budget}"}}]}}"""
        for name in NAMES
    )
    workloads = "".join(
        f"""
- name: {name}
  cpu: {cpu}
  memory: 1Gi
  spec: {{nodeSelector: {{team: {name}}}}}
  replicas: {{steps: [{{after: 0s, value: 12}}, {{after: 10m, value: {left[name]}}}]}}"""
        for name, cpu in zip(NAMES, ("900m", "1300m", "1700m"), strict=True)
    )
    story = scenario(f"workloads:{workloads}", pools=f"pools:{pools}\n")
    policy = Policy(decisions=Decisions(search=search, effort=0))
    cluster = VirtualCluster(story, CATALOG, policy=policy, seed=seed)
    return cluster, InFlight(cluster)


@pytest.mark.parametrize("search", [GLOBAL, PREFIX])
def test_pools_that_have_nothing_to_do_with_each_other_shrink_side_by_side(search: str) -> None:
    cluster, in_flight = shrinking("100%", dict.fromkeys(NAMES, 5), search=search)
    invariants = Invariants(cluster)
    cluster.run(0.5 * HOUR)
    assert in_flight.most > 1
    invariants.expect_nothing_left_over()


@pytest.mark.slow
@examples(6)
@given(
    st.sampled_from(["1", "50%", "100%"]),
    st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES}),
    st.sampled_from([GLOBAL, PREFIX]),
    st.integers(0, 2**16),
)
def test_commands_in_flight_share_no_node_no_room_and_no_budget(
    budget: str, left: dict[str, int], search: str, seed: int
) -> None:
    cluster, _ = shrinking(budget, left, search=search, seed=seed)
    invariants = Invariants(cluster)
    cluster.run(0.6 * HOUR)
    invariants.expect_nothing_left_over()
