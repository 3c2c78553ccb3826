"""Why nodes refuse pods that keep to a host, be there volumes of hosts in the cluster or not."""

from itertools import product

import pytest
from tests.factories import local_volume, node, node_term, pod, pvc
from tests.packing.refusal_cases import on_nodes

from karpool.model.labels import ARCH, HOSTNAME
from karpool.model.pod import Pod
from karpool.model.scheduling import NodeExpression, NodeTerm
from karpool.packing.refusal_messages import RefusalRule

LOCAL = {
    "persistent_volumes": (local_volume("disk", "a"), local_volume("far", "z")),
    "persistent_volume_claims": (pvc("data", volume="disk"), pvc("lost", volume="far")),
}
HOLDS_A_DISK = pod("db-0", node="a", claims=["data"])
BY_NAME = NodeTerm(match_fields=(NodeExpression("metadata.name", "In", ("z",)),))
Z = f"{HOSTNAME} In [z]"
PODS = {
    "selector": pod("web-1", selector={HOSTNAME: "z"}),
    "affinity": pod("web-1", terms=[node_term((HOSTNAME, "In", "z"))]),
    "name": pod("web-1", terms=[BY_NAME]),
    "either label or host": pod("web-1", terms=[node_term((ARCH, "In", "arm64")), node_term((HOSTNAME, "In", "z"))]),
    "both label and host": pod("web-1", terms=[node_term((HOSTNAME, "In", "z"), (ARCH, "In", "arm64"))]),
    "volume": pod("web-1", claims=["lost"]),
    "volume and selector": pod("web-1", claims=["lost"], selector={HOSTNAME: "z"}),
}
ARM = f"{ARCH} In [arm64]"
SAYS = {
    "either label or host": {f"requires {Z}", f"requires {ARM} or {Z}"},
    "both label and host": {f"requires {ARM}"},
    "volume": {f"its volumes require {Z}"},
    "volume and selector": {f"requires {Z}", f"its volumes require {Z}"},
}


@pytest.mark.parametrize(("how", "bound", "taints"), [*product(PODS, ([], [HOLDS_A_DISK]), ((), ("team=red",)))])
def test_a_pod_that_keeps_to_a_host_is_told_so(how: str, bound: list[Pod], taints: tuple[str, ...]) -> None:
    nodes = [node("a", taints=taints), node("b", taints=taints)]
    case = on_nodes("", pod=PODS[how], nodes=nodes, rule=RefusalRule.LABEL, says="", others=LOCAL, bound=bound)
    (found,) = case.ask()
    assert found.count == 2
    assert found.detail in ({"taint team=red:NoSchedule"} if taints else SAYS.get(how, {f"requires {Z}"}))
