"""A replacement that a pod came to while the watch of pods was stalled survives the rollback of its command."""

import pytest
from tests.factories import pod
from tests.virtual.mirror import Mirror
from tests.virtual.test_pauses import one_pool
from tests.virtual.test_refused_replacements import STORY
from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.execution import actions as a
from karpool.execution.tickets import REPLACES, commands_in_progress
from karpool.model.labels import DO_NOT_DISRUPT


@pytest.mark.parametrize("used", [True, False])
def test_only_a_replacement_that_nobody_uses_goes_when_a_pause_takes_its_command_back(*, used: bool) -> None:
    mirror = Mirror(virtual_cluster(STORY))
    cluster = mirror.cluster
    replacements: list[str] = []

    def pause_at_commit(action: a.Action) -> None:
        if not (isinstance(action, a.Annotate) and '"committed":true' in (action.value or "")) or replacements:
            return
        mirror.stall("pods")
        replacements.extend(
            claim.status.node_name for claim in cluster.store.claims if REPLACES in claim.metadata.annotations
        )
        late = pod("late-1", node=replacements[0], annotations={DO_NOT_DISRUPT: "true"}, phase="Running")
        if used:
            cluster.queue.after(0.0, lambda: cluster.store.pods.put(late))
        cluster.queue.after(0.0, lambda: one_pool(cluster, paused=True))

    cluster.actuator.observers.append(pause_at_commit)
    cluster.run(HOUR)
    assert len(replacements) == 1
    # A node that is told to go would stay as long as its pod may not be evicted.
    assert [node.name for node in cluster.store.nodes if node.terminating] == []
    assert (replacements[0] in cluster.store.nodes) is used
    assert commands_in_progress(cluster.store.claims) == []
    assert not any(REPLACES in claim.metadata.annotations for claim in cluster.store.claims)
