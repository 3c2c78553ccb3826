"""Random small clusters under a random controller: no rule is ever broken, and nothing is left over at the end."""

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.virtual.invariants import Invariants
from tests.virtual.worlds import BY_PREFIXES, CATALOG, HOUR, changed, scenario

from karpool.execution.actions import Action
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import Curve, CurveStep
from karpool.virtual.scenario import Fault, Interruptions, Protection, Scenario, ScenarioWorkload, Shortage
from karpool.wire.duration import Duration
from karpool.wire.quantity import parse_quantity

BUSY = 1.5 * HOUR
QUIET = 4 * HOUR


def duration(seconds: int) -> Duration:
    return Duration(seconds * 10**9)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[ScenarioWorkload, ...]:
    drawn = []
    for number in range(draw(st.integers(1, 3))):
        times = sorted(draw(st.lists(st.integers(60, int(BUSY)), max_size=3)))
        steps = [CurveStep(after=duration(at), value=draw(st.integers(0, 8))) for at in (0, *times)]
        drawn.append(
            ScenarioWorkload(
                name=f"app{number}",
                kind=draw(st.sampled_from(["Deployment", "Deployment", "StatefulSet"])),
                replicas=Curve(steps=tuple(steps)),
                cpu=parse_quantity(draw(st.sampled_from(["300m", "900m", "2"]))),
                memory=parse_quantity(draw(st.sampled_from(["256Mi", "3Gi"]))),
                protection=draw(
                    st.sampled_from([None, Protection(max_unavailable=1), Protection(min_available="50%")])
                ),
                deploys=tuple(duration(at) for at in draw(st.lists(st.integers(300, int(BUSY)), max_size=1))),
            )
        )
    return (*drawn, ScenarioWorkload(name="agent", kind="DaemonSet", cpu=parse_quantity("50m")))


@st.composite
def faults(draw: st.DrawFn) -> tuple[Fault, ...]:
    shortage = Shortage(
        start=duration(draw(st.integers(0, 3000))), length=duration(1200), instance_types=("c-4x-amd64-linux",)
    )
    return tuple(
        draw(st.lists(st.sampled_from([shortage, Interruptions(every=duration(3000))]), max_size=2, unique=True))
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    after = draw(st.sampled_from(["0s", "30s", "5m"]))
    grace = draw(st.sampled_from(["", ", consolidationGracePeriod: 10m"]))
    kinds = draw(st.sampled_from(["on-demand", "spot, on-demand"]))
    budget = draw(st.sampled_from(["1", "50%", "100%"]))
    pools = f"""
pools:
- metadata: {{name: general}}
  spec:
    template: {{spec: {{requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [{kinds}]}}]}}}}
    disruption: {{consolidateAfter: {after}{grace}, budgets: [{{nodes: "{budget}"}}]}}
"""
    return changed(scenario("", pools=pools), workloads=draw(workloads()), faults=draw(faults()))


class Killer:
    """Stops the controller after every so many actions and starts it again a little later."""

    def __init__(self, cluster: VirtualCluster, gaps: list[int]) -> None:
        self.cluster = cluster
        self.gaps = gaps
        self.left = gaps[0] if gaps else 0

    def __call__(self, action: Action) -> None:
        del action
        if not self.gaps or self.cluster.queue.time > BUSY or not self.cluster.controller.running:
            return
        self.left -= 1
        if self.left <= 0:
            self.gaps = self.gaps[1:]
            self.left = self.gaps[0] if self.gaps else 0
            self.cluster.controller.stop()
            self.cluster.queue.after(7.0, self.cluster.controller.start)


@examples(12)
@given(drawn=scenarios(), seed=st.integers(0, 3), gaps=st.lists(st.integers(1, 60), max_size=12))
def test_no_rule_is_broken_and_nothing_is_left_over(drawn: Scenario, seed: int, gaps: list[int]) -> None:
    cluster = VirtualCluster(drawn, CATALOG, policy=BY_PREFIXES, seed=seed)
    invariants = Invariants(cluster)
    cluster.actuator.observers.append(Killer(cluster, gaps))
    cluster.run(BUSY)
    if not any(isinstance(fault, Interruptions) for fault in drawn.faults):
        cluster.run(QUIET)
        invariants.expect_nothing_left_over()
