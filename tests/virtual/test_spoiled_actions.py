"""There is one execution: spoil any of its actions, and the virtual cluster shows it."""

import pytest
from tests.virtual.invariants import BrokenInvariantError
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.execution import actions as a

STORY = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi, protection: {maxUnavailable: 2},"
    " replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]"
)


def ends_well(spoiled: type | None) -> bool:
    """Whether the evening's pods end up on cheap nodes, all in use, with no rule broken and nothing left over."""
    cluster, invariants = checked_cluster(STORY)
    execute = cluster.actuator._do
    cluster.actuator._do = lambda action: None if type(action) is spoiled else execute(action)  # type: ignore[method-assign]
    try:
        cluster.run(1.5 * HOUR)
        invariants.expect_nothing_left_over()
    except BrokenInvariantError:
        return False
    in_use = all(claim.is_true("Initialized") for claim in cluster.store.claims)
    cheap = cluster.recorder.samples[-1].price_per_hour < 0.2
    return in_use and cheap and cluster.recorder.summary().evictions > 0


def test_nothing_spoiled_ends_well() -> None:
    assert ends_well(None)


@pytest.mark.parametrize(
    "spoiled",
    [
        a.AddTaint,
        a.AddFinalizer,
        a.Annotate,
        a.CreateClaim,
        a.DeleteClaim,
        a.DeleteNode,
        a.EvictPod,
        a.RemoveFinalizer,
        a.SetClaimCondition,
        a.SetLabel,
        a.TerminateInstance,
    ],
)
def test_a_spoiled_action_shows(spoiled: type) -> None:
    assert not ends_well(spoiled)
