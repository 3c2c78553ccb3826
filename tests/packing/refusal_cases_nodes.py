"""Why existing nodes refuse a pod, one line each."""

from msgspec.structs import replace
from tests.factories import (
    Z1,
    Z2,
    affinity_to,
    anti_affinity,
    csi_node,
    node,
    node_term,
    pod,
    pv,
    spread,
)
from tests.packing.refusal_cases import BIG, DRIVER, N1, N2, PVC, WEB, on_nodes

from karpool.model.labels import ARCH, HOSTNAME, ZONE
from karpool.packing.refusals import Rule

NODE_CASES = [
    on_nodes("memory", BIG, [N1, N2], Rule.NOT_ENOUGH, "2 nodes: not enough memory (20Gi wanted, at most 16Gi free)"),
    on_nodes(
        "the first missing resource is named",
        pod(cpu="5", memory="20Gi"),
        [N1],
        Rule.NOT_ENOUGH,
        "1 node: not enough cpu (5 wanted, at most 4 free)",
    ),
    on_nodes(
        "what is free is never rounded to what is wanted",
        pod(memory="17179869185"),
        [N1],
        Rule.NOT_ENOUGH,
        "1 node: not enough memory (16.01Gi wanted, at most 16Gi free)",
    ),
    on_nodes(
        "an extended resource",
        pod(requests={"example.com/gpu": 2}),
        [N1],
        Rule.NOT_ENOUGH,
        "1 node: not enough example.com/gpu (2 wanted, at most 0 free)",
    ),
    on_nodes(
        "pods", pod(), [node(pods=1)], Rule.NOT_ENOUGH, "1 node: no room for another pod", bound=[pod("a-1", node="n1")]
    ),
    on_nodes(
        "an overfull node",
        pod(cpu=None),
        [node(cpu=1)],
        Rule.NOT_ENOUGH,
        "1 node: already overfull in cpu",
        bound=[pod("a-1", node="n1", cpu=2)],
    ),
    on_nodes("a taint", pod(), [node(taints=["team=blue"])], Rule.TAINT, "1 node: taint team=blue:NoSchedule"),
    on_nodes(
        "a cordon",
        pod(),
        [node(cordoned=True)],
        Rule.TAINT,
        "1 node: taint node.kubernetes.io/unschedulable:NoSchedule",
    ),
    on_nodes(
        "a label",
        pod(selector={ARCH: "arm64"}),
        [N1, N2],
        Rule.LABEL,
        "2 nodes: requires kubernetes.io/arch In [arm64]",
    ),
    on_nodes(
        "alternatives of labels",
        pod(terms=[node_term((ARCH, "In", "arm64")), node_term((ZONE, "In", "z9"))]),
        [N1],
        Rule.LABEL,
        "1 node: requires kubernetes.io/arch In [arm64] or topology.kubernetes.io/zone In [z9]",
    ),
    on_nodes(
        "a host name",
        pod(require=[(HOSTNAME, "In", "n9")]),
        [N1],
        Rule.LABEL,
        "1 node: requires kubernetes.io/hostname In [n9]",
    ),
    on_nodes(
        "a volume elsewhere",
        pod(claims=["data"]),
        [N1],
        Rule.VOLUME,
        f"1 node: its volumes require {ZONE} In [{Z2}]",
        others={**PVC, "persistent_volumes": (pv("disk", zones=[Z2]),)},
    ),
    on_nodes(
        "volumes that a node can attach",
        pod(claims=["data"]),
        [N1],
        Rule.ATTACH_LIMIT,
        f"1 node: cannot attach another {DRIVER} volume",
        others={
            **PVC,
            "persistent_volumes": (pv("disk", driver=DRIVER),),
            "csi_nodes": (csi_node("n1", **{DRIVER: 0}),),
        },
    ),
    on_nodes(
        "shared volumes that a node can attach",
        pod(claims=["data"]),
        [N1],
        Rule.ATTACH_LIMIT,
        f"1 node: cannot attach another {DRIVER} volume",
        bound=[pod("b-1", claims=["data"])],
        others={
            **PVC,
            "persistent_volumes": (pv("disk", driver=DRIVER),),
            "csi_nodes": (csi_node("n1", **{DRIVER: 0}),),
        },
    ),
    on_nodes(
        "a host port",
        pod(ports=[8080]),
        [N1],
        Rule.PORT,
        "1 node: host port 8080/TCP is taken",
        bound=[pod("a-1", node="n1", ports=["10.0.0.1:8080"])],
    ),
    on_nodes(
        "spread over zones",
        pod(labels=WEB, spread=[spread(WEB, min_domains=3)]),
        [N1],
        Rule.SPREAD,
        "1 node: would break zone spread",
        bound=[pod("a-1", node="n1", labels=WEB)],
    ),
    on_nodes(
        "spread over zones on a node without one",
        pod(labels=WEB, spread=[spread(WEB)]),
        [node(zone=None)],
        Rule.SPREAD,
        "1 node: no label topology.kubernetes.io/zone, which zone spread needs",
    ),
    on_nodes(
        "affinity",
        pod(near=[affinity_to({"app": "db"}, ZONE)]),
        [N1],
        Rule.AFFINITY,
        "1 node: zone affinity: no pod app=db there",
    ),
    on_nodes(
        "anti-affinity",
        pod(anti=[anti_affinity({"app": "db"})]),
        [N1],
        Rule.ANTI_AFFINITY,
        "1 node: host anti-affinity: a pod app=db is there",
        bound=[pod("db-1", node="n1")],
    ),
    on_nodes(
        "anti-affinity of another pod",
        pod("web-1"),
        [N1],
        Rule.ANTI_AFFINITY,
        "1 node: host anti-affinity of a pod there keeps app=web away",
        bound=[pod("db-1", node="n1", anti=[anti_affinity(WEB)])],
    ),
    on_nodes(
        "a closed node", pod(), [N1], Rule.CLOSED, "1 node: would take it, but accepts no pods now", closed=["n1"]
    ),
    on_nodes(
        "a closed node that is full anyway",
        BIG,
        [N1],
        Rule.NOT_ENOUGH,
        "1 node: not enough memory (20Gi wanted, at most 16Gi free)",
        closed=["n1"],
    ),
    on_nodes(
        "wishes are no reason",
        replace(BIG, spec=pod(memory="20Gi", prefer=[(1, node_term((ARCH, "In", "arm64")))]).spec),
        [N1],
        Rule.NOT_ENOUGH,
        "1 node: not enough memory (20Gi wanted, at most 16Gi free)",
    ),
    on_nodes(
        "of alternatives the one that got furthest",
        pod(memory="20Gi", terms=[node_term((ZONE, "In", Z1)), node_term((ZONE, "In", Z2))]),
        [N1, N2],
        Rule.NOT_ENOUGH,
        "2 nodes: not enough memory (20Gi wanted, at most 16Gi free)",
    ),
]
