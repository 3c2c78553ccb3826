"""Every rule of the checker can fail, and legal placements pass."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from karpool.model.labels import HOSTNAME, ZONE
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements
from karpool.model.selectors import LabelSelector, SelectorExpression
from tests.checker import Machine, Placement, State, could_place, narrowed, state_of, template_of, violations
from tests.factories import (
    affinity_to,
    anti_affinity,
    claim_for,
    csi_node,
    daemon_set,
    default_catalog,
    instance_type,
    namespace,
    node,
    node_pool,
    node_term,
    pod,
    pv,
    pvc,
    spread,
    storage_class,
)

WEB = {"app": "web"}
A, B, C = "zone-a", "zone-b", "zone-c"


def place(cluster: Objects, *moves: tuple[Pod, str]) -> list[str]:
    """What the checker says of these pods going to these nodes, in this order."""
    state = state_of(cluster)
    return violations(state, [Placement(who, state.machines[where]) for who, where in moves])


ZONED = Objects(nodes=(node("n1", zone=A), node("n2", zone=B), node("n3", zone=C)))
LEGAL = [
    pytest.param(ZONED, [(pod("web-1"), "n1")], id="a plain pod"),
    pytest.param(ZONED, [(pod("web-1", cpu=4, memory="16Gi"), "n1")], id="exactly full"),
    pytest.param(Objects(nodes=(node(taints=["a=b"]),)), [(pod(tolerations=["a=b"]), "n1")], id="taint tolerated"),
    pytest.param(Objects(nodes=(node(taints=["a:PreferNoSchedule"]),)), [(pod(), "n1")], id="taint only a preference"),
    pytest.param(ZONED, [(pod(selector={ZONE: B}), "n2")], id="node selector"),
    pytest.param(ZONED, [(pod(selector={"failure-domain.beta.kubernetes.io/zone": B}), "n2")], id="an old label name"),
    pytest.param(
        ZONED, [(pod(terms=[node_term((ZONE, "In", A)), node_term((ZONE, "In", B))]), "n2")], id="either term"
    ),
    pytest.param(ZONED, [(pod(near=[affinity_to(WEB, ZONE)]), "n1")], id="affinity starts with itself"),
    pytest.param(
        ZONED,
        [(pod("db-1"), "n1"), (pod(near=[affinity_to({"app": "db"}, ZONE)]), "n1")],
        id="affinity to a pod in the zone",
    ),
    pytest.param(ZONED, [(pod(anti=[anti_affinity(WEB)]), "n1"), (pod("web-2"), "n2")], id="far enough"),
    pytest.param(
        ZONED,
        [(pod(anti=[anti_affinity(WEB)]), "n1"), (pod("web-2", namespace="other"), "n1")],
        id="anti-affinity ends at its namespace",
    ),
    pytest.param(
        ZONED, [(pod(f"web-{i}", spread=[spread(WEB)]), f"n{i % 3 + 1}") for i in range(6)], id="two in each zone"
    ),
    pytest.param(
        ZONED,
        [(pod(f"web-{i}", spread=[spread(WEB, when="ScheduleAnyway")]), "n1") for i in range(3)],
        id="spread only as a wish",
    ),
    pytest.param(
        ZONED,
        [(pod(f"web-{i}", selector={ZONE: A}, spread=[spread(WEB)]), "n1") for i in range(3)],
        id="zones the pod cannot use do not count",
    ),
    pytest.param(
        Objects(nodes=(node("n1", zone=A), node("n2", zone=B, taints=["a"]))),
        [(pod(f"web-{i}", spread=[spread(WEB, taints_policy="Honor")]), "n1") for i in range(3)],
        id="zones the pod does not tolerate do not count, if it says so",
    ),
    pytest.param(
        ZONED,
        [
            (pod(f"web-{r}", labels={**WEB, "rev": r}, spread=[spread(WEB, match_label_keys=["rev"])]), "n1")
            for r in ("a", "b")
        ],
        id="each revision spreads by itself",
    ),
    pytest.param(ZONED, [(pod(ports=[80]), "n1"), (pod("b", ports=["80/UDP"]), "n1")], id="ports of two protocols"),
    pytest.param(
        ZONED,
        [(pod(ports=["10.0.0.1:80"]), "n1"), (pod("b", ports=["10.0.0.2:80"]), "n1")],
        id="ports of two addresses",
    ),
]
ILLEGAL = [
    pytest.param(ZONED, [(pod(cpu="4100m"), "n1")], "not enough cpu", id="too large"),
    pytest.param(ZONED, [(pod(cpu=3), "n1"), (pod("b", cpu=2), "n1")], "not enough cpu", id="too large together"),
    pytest.param(
        Objects(nodes=(node(pods=1),)), [(pod("a"), "n1"), (pod("b"), "n1")], "not enough pods", id="too many"
    ),
    pytest.param(ZONED, [(pod(requests={"example.com/gpu": 1}), "n1")], "example.com/gpu", id="no such resource"),
    pytest.param(
        Objects(nodes=(node(),), daemon_sets=(daemon_set(cpu=2),)), [(pod(cpu=3), "n1")], "not enough cpu", id="reserve"
    ),
    pytest.param(Objects(nodes=(node(taints=["a=b"]),)), [(pod(tolerations=["a=c"]), "n1")], "taint a=b", id="taint"),
    pytest.param(Objects(nodes=(node(taints=["a:NoExecute"]),)), [(pod(), "n1")], "taint a", id="taint NoExecute"),
    pytest.param(Objects(nodes=(node(cordoned=True),)), [(pod(), "n1")], "unschedulable", id="cordoned"),
    pytest.param(ZONED, [(pod(selector={ZONE: B}), "n1")], "node selector", id="node selector"),
    pytest.param(ZONED, [(pod(selector={"custom": "x"}), "n1")], "node selector", id="a label nobody has"),
    pytest.param(ZONED, [(pod(require=[(ZONE, "NotIn", A)]), "n1")], "node affinity", id="node affinity"),
    pytest.param(ZONED, [(pod(require=[("gen", "Gt", "5")]), "n1")], "node affinity", id="node affinity, number"),
    pytest.param(ZONED, [(pod(near=[affinity_to({"app": "db"}, ZONE)]), "n1")], "affinity", id="nobody to be near to"),
    pytest.param(
        ZONED,
        [(pod("web-1", near=[affinity_to(WEB, ZONE)]), "n1"), (pod("web-2", near=[affinity_to(WEB, ZONE)]), "n2")],
        "affinity",
        id="affinity starts only once",
    ),
    pytest.param(
        ZONED,
        [
            (pod("db-1", labels={"x": "1"}), "n1"),
            (pod("db-2", labels={"y": "1"}), "n1"),
            (pod(near=[affinity_to({"x": "1"}, ZONE), affinity_to({"y": "1"}, ZONE)]), "n1"),
        ],
        "affinity",
        id="one pod must match all terms",
    ),
    pytest.param(
        ZONED, [(pod("web-1"), "n1"), (pod("web-2", anti=[anti_affinity(WEB)]), "n1")], "anti-affinity", id="too near"
    ),
    pytest.param(
        ZONED,
        [(pod("web-1", anti=[anti_affinity(WEB)]), "n1"), (pod("web-2"), "n1")],
        "anti-affinity of default/web-1",
        id="anti-affinity of the one that was there",
    ),
    pytest.param(
        ZONED,
        [(pod("web-1", namespace="x"), "n1"), (pod("web-2", anti=[anti_affinity(WEB, namespaces=["x"])]), "n1")],
        "anti-affinity",
        id="anti-affinity across listed namespaces",
    ),
    pytest.param(
        Objects(nodes=(node(),), namespaces=(namespace("x", team="red"),)),
        [
            (pod("web-1", namespace="x"), "n1"),
            (pod("web-2", anti=[anti_affinity(WEB, namespace_selector={"team": "red"})]), "n1"),
        ],
        "anti-affinity",
        id="anti-affinity across selected namespaces",
    ),
    pytest.param(
        ZONED, [(pod(f"web-{i}", spread=[spread(WEB)]), "n1") for i in range(2)], "spread over", id="two in one zone"
    ),
    pytest.param(
        ZONED,
        [(pod(f"web-{i}", spread=[spread(WEB, HOSTNAME)]), "n1") for i in range(2)],
        "spread over",
        id="two on one host",
    ),
    pytest.param(
        Objects(nodes=(node("n1", zone=A), node("n2", zone=B))),
        [(pod(f"web-{i}", spread=[spread(WEB, min_domains=3)]), f"n{i % 2 + 1}") for i in range(3)],
        "spread over",
        id="too few domains",
    ),
    pytest.param(
        ZONED,
        [(pod(f"web-{i}", selector={ZONE: A}, spread=[spread(WEB, affinity_policy="Ignore")]), "n1") for i in range(2)],
        "spread over",
        id="zones the pod cannot use count, if it says so",
    ),
    pytest.param(
        Objects(nodes=(node(zone=None),)), [(pod(spread=[spread(WEB)]), "n1")], "missing here", id="no such domain"
    ),
    pytest.param(ZONED, [(pod("a", ports=[80]), "n1"), (pod("b", ports=[80]), "n1")], "host port 80", id="port"),
    pytest.param(
        ZONED,
        [(pod("a", ports=["10.0.0.1:80"]), "n1"), (pod("b", ports=[80]), "n1")],
        "host port 80",
        id="port, any IP",
    ),
    pytest.param(ZONED, [(pod(), "n1"), (pod(), "n2")], "placed twice", id="in two places"),
]


@pytest.mark.parametrize(("cluster", "moves"), LEGAL)
def test_a_legal_placement_has_no_violation(cluster: Objects, moves: list[tuple[Pod, str]]) -> None:
    assert place(cluster, *moves) == []


@pytest.mark.parametrize(("cluster", "moves", "expected"), ILLEGAL)
def test_an_illegal_placement_is_found(cluster: Objects, moves: list[tuple[Pod, str]], expected: str) -> None:
    (violation,) = place(cluster, *moves)
    assert expected in violation


VOLUMES = Objects(
    nodes=(node("n1", zone=A), node("n2", zone=B)),
    persistent_volumes=(pv("disk-a", zones=[A], driver="csi.example.com"), pv("disk-b", zones=[A, B])),
    persistent_volume_claims=(
        pvc("a", volume="disk-a"),
        pvc("b", volume="disk-b"),
        pvc("late", storage_class="only-b"),
        pvc("now", storage_class="eager"),
        pvc("lost", volume="disk-a", phase="Lost"),
        pvc("dangling", volume="nowhere"),
    ),
    storage_classes=(storage_class("only-b", zones=[B]), storage_class("eager", binding="Immediate")),
    csi_nodes=(csi_node("n1", **{"csi.example.com": 1}), csi_node("n2", **{"csi.example.com": 1})),
)


@pytest.mark.parametrize(
    ("claim", "where", "expected"),
    [
        ("a", "n1", ""),
        ("a", "n2", "cannot be reached"),
        ("b", "n2", ""),
        ("late", "n2", ""),
        ("late", "n1", "cannot be reached"),
        ("now", "n1", "not bound"),
        ("lost", "n1", "lost"),
        ("dangling", "n1", "missing"),
        ("unheard-of", "n1", "missing"),
    ],
)
def test_a_volume_must_be_reached_from_its_node(claim: str, where: str, expected: str) -> None:
    messages = place(VOLUMES, (pod(claims=[claim]), where))
    assert (not messages) if not expected else any(expected in message for message in messages)


def test_a_node_attaches_no_more_volumes_than_its_driver_allows_and_a_shared_one_once() -> None:
    more = changed(VOLUMES, persistent_volume_claims=(pvc("a", volume="disk-a"), pvc("a2", volume="disk-a")))
    assert place(more, (pod("x", claims=["a"]), "n1"), (pod("y", claims=["a"]), "n1")) == []
    (violation,) = place(more, (pod("x", claims=["a"]), "n1"), (pod("y", claims=["a2"]), "n1"))
    assert "more than 1 volumes of csi.example.com" in violation


def test_pods_of_daemon_sets_that_are_there_are_not_reserved_for_twice() -> None:
    agent = pod("agent-1", namespace="kube-system", owner="DaemonSet", cpu=2, node="n1")
    cluster = Objects(nodes=(node(),), daemon_sets=(daemon_set(cpu=2),), pods=(agent,))
    assert place(cluster, (pod(cpu=2), "n1")) == []


def test_taints_that_will_vanish_do_not_count_until_a_node_is_initialized() -> None:
    starting = node(
        initialized=False, taints=["node.kubernetes.io/not-ready", "boot"], resources={"example.com/gpu": 0}
    )
    claim = claim_for(starting, startup_taints=["boot"], capacity={"example.com/gpu": 2})
    assert place(Objects(nodes=(starting,), node_claims=(claim,)), (pod(requests={"example.com/gpu": 1}), "n1")) == []
    ready = node(taints=["boot"])
    claimed = claim_for(ready, startup_taints=["boot"])
    assert place(Objects(nodes=(ready,), node_claims=(claimed,)), (pod(), "n1")) != []


SMALL = instance_type("small", 2, "4Gi", zones=[A, B])
LARGE = instance_type("large", 8, "32Gi", zones=[A, B])


def fresh(name: str = "new-1", **rules: str) -> Machine:
    template = template_of(node_pool(), (SMALL, LARGE), name)
    assert template is not None
    return narrowed(template, Requirements.of_labels(rules))


def test_a_new_machine_must_hold_its_pods_whatever_it_turns_out_to_be() -> None:
    assert violations(State(), [Placement(pod(cpu=1), fresh())]) == []
    (violation,) = violations(State(), [Placement(pod(cpu=4), fresh())])
    assert "not enough cpu" in violation
    large = narrowed(fresh(), Requirements(), types={"large"})
    assert violations(State(), [Placement(pod(cpu=4), large)]) == []
    assert (
        "no instance type" in violations(State(), [Placement(pod(), narrowed(fresh(), Requirements(), types={"x"}))])[0]
    )


def test_a_spread_pod_needs_a_decided_domain_and_an_undecided_neighbour_keeps_away() -> None:
    (violation,) = violations(State(), [Placement(pod(spread=[spread(WEB)]), fresh())])
    assert "undecided" in violation
    apart = [
        Placement(pod("web-1", anti=[anti_affinity(WEB, ZONE)]), fresh()),
        Placement(pod("web-2"), fresh("new-2", **{ZONE: B})),
    ]
    assert "anti-affinity" in violations(State(), apart)[0]
    apart[0] = replace(apart[0], machine=fresh(**{ZONE: A}))
    assert violations(State(), apart) == []


@pytest.mark.parametrize(("limit", "expected"), [({"cpu": "2"}, 1), ({"nodes": "1"}, 1), ({"cpu": "16"}, 0)])
def test_a_pool_opens_no_machine_beyond_its_limits(limit: dict[str, str], expected: int) -> None:
    pool = node_pool(limits=limit)
    state = state_of(Objects(node_pools=(pool,)))
    small = narrowed(fresh(), Requirements(), types={"small"})
    second = replace(small, name="new-2")
    messages = violations(state, [Placement(pod("a"), small), Placement(pod("b"), second)])
    assert len(messages) == expected
    assert all("limit" in message for message in messages)


def test_could_place_names_nodes_and_types_and_nothing_when_there_is_no_place() -> None:
    pool = node_pool(requirements=[(ZONE, "In", B)])
    cluster = Objects(nodes=(node("n1", zone=A, cpu=2),), node_pools=(pool,))
    state = state_of(cluster, types=(SMALL, LARGE))
    assert could_place(pod(cpu=1, selector={ZONE: A}), state) == ["n1"]
    assert could_place(pod(cpu=4), state) == ["new default: large/zone-b/spot", "new default: large/zone-b/on-demand"]
    assert could_place(pod(cpu=4, selector={ZONE: A}), state) == []
    assert could_place(pod(claims=["unheard-of"]), state) == []


def test_could_place_counts_zones_that_only_a_new_machine_would_have() -> None:
    running = pod("web-1", node="n1")
    cluster = Objects(nodes=(node("n1", zone=A),), node_pools=(node_pool(taints=["closed"]),), pods=(running,))
    waiting = pod("web-2", spread=[spread(WEB)])
    assert could_place(waiting, state_of(cluster)) == ["n1"]
    assert could_place(waiting, state_of(cluster, types=(SMALL,))) == []


def test_the_default_catalogue_gives_options_for_every_type() -> None:
    template = template_of(node_pool(), default_catalog().types)
    assert template is not None
    assert {option.name.partition("/")[0] for option in template.options} == set(default_catalog().by_name)


def test_a_selector_by_expression_matches_like_one_by_labels() -> None:
    selector = LabelSelector(match_expressions=(SelectorExpression(key="app", operator="In", values=("web",)),))
    moves = [(pod(f"web-{i}", anti=[anti_affinity(selector)]), "n1") for i in range(2)]
    assert len(place(ZONED, *moves)) == 1
