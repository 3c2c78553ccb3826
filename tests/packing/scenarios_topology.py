"""Scenarios of spread, affinity and anti-affinity."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.factories import LONG_AGO, Z1, Z2, Z3, affinity_to, namespace, node, node_pool, node_term, pod, spread
from tests.packing.scenarios import Scenario, pods

from karpool.cluster.constraints import Preferences
from karpool.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.packing.options import Options
from karpool.packing.result import PlacementResult

WEB = {"app": "web"}
BY_ZONE, BY_HOST, BY_CAPACITY = spread(WEB), spread(WEB, HOSTNAME), spread(WEB, CAPACITY_TYPE)
AWAY, AWAY_BY_ZONE = affinity_to(WEB, HOSTNAME), affinity_to(WEB, ZONE)


def pool_in(*zones: str, name: str = "default", **rest: Any) -> Any:
    return node_pool(name, requirements=[(ZONE, "In", *zones)], **rest)


def shut(name: str, zone: str | None = Z1, **rest: Any) -> Node:
    """A node that takes no more pods."""
    return node(name, zone=zone, cordoned=True, **rest)


def held(*counts: int, **rest: Any) -> dict[str, Any]:
    """Full nodes n1, n2, … in zones 1, 2, … with that many web pods each."""
    zones = [Z1, Z2, Z3]
    nodes = [shut(f"n{i}", zones[i]) for i, count in enumerate(counts) if count]
    bound = [pod(f"web-old{i}{j}", labels=WEB, node=f"n{i}", **rest) for i, c in enumerate(counts) for j in range(c)]
    return {"nodes": nodes, "bound": bound}


def skewed(
    name: str,
    *,
    count: int,
    per_domain: Sequence[int] = (),
    key: str = ZONE,
    unplaced: int = 0,
    given: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Scenario:
    """So many alike pods, and how many of them each domain has in the end, fewest first."""
    skew = (key, tuple(per_domain))
    return Scenario(name=name, pods=pods(count, **rest), unplaced=unplaced, skew=skew, **(given or {}))


def revisions(*keys: str) -> list[Pod]:
    rule = spread(WEB, HOSTNAME, match_label_keys=keys)
    return [pod(f"web-{r}{i}", labels={**WEB, "revision": r}, spread=[rule]) for r in "ab" for i in (1, 2)]


MISMATCHED = {
    "pools": [node_pool(labels={"rack": "foo", "team": "us"})],
    "nodes": [shut("n1", labels={"rack": "baz", "team": "them"}), shut("n2", labels={"rack": "qux", "team": "them"})],
}
UNTAINTED_ONLY = {"pools": [pool_in(Z1, Z2), pool_in(Z3, name="tainted", taints=["a"])]}

SPREAD = [
    skewed("zones fill evenly", count=9, per_domain=[3, 3, 3], spread=[BY_ZONE]),
    skewed(
        "a zone no pool offers holds the others back",
        count=6,
        per_domain=[1, 2, 2],
        unplaced=2,
        spread=[BY_ZONE],
        given={"pools": [pool_in(Z1, Z2)], **held(0, 0, 1)},
    ),
    skewed("empty zones catch up first", count=3, per_domain=[1, 2, 3], spread=[BY_ZONE], given=held(3, 0, 0)),
    skewed(
        "two zones where three are asked for",
        count=3,
        per_domain=[1, 1],
        unplaced=1,
        spread=[spread(WEB, min_domains=3)],
        given={"pools": [pool_in(Z1, Z2)]},
    ),
    skewed(
        "three zones where three are asked for", count=11, per_domain=[3, 4, 4], spread=[spread(WEB, min_domains=3)]
    ),
    skewed("capacity types fill evenly", count=4, per_domain=[2, 2], key=CAPACITY_TYPE, spread=[BY_CAPACITY]),
    skewed(
        "a capacity type no pool offers",
        count=5,
        per_domain=[1, 2],
        key=CAPACITY_TYPE,
        unplaced=3,
        spread=[BY_CAPACITY],
        given={
            "pools": [node_pool(requirements=[(CAPACITY_TYPE, "In", ON_DEMAND)])],
            "nodes": [shut("n1", capacity_type=SPOT)],
            "bound": [pod("web-9", node="n1")],
        },
    ),
    skewed(
        "a preference for even capacity types",
        count=5,
        per_domain=[1, 5],
        key=CAPACITY_TYPE,
        spread=[spread(WEB, CAPACITY_TYPE, when="ScheduleAnyway")],
        given={
            "pools": [node_pool(requirements=[(CAPACITY_TYPE, "In", ON_DEMAND)])],
            "nodes": [shut("n1", capacity_type=SPOT)],
            "bound": [pod("web-9", node="n1")],
        },
    ),
    skewed(
        "a zone of a pool at its limit",
        count=5,
        per_domain=[1, 1],
        unplaced=3,
        spread=[BY_ZONE],
        given={"pools": [pool_in(Z1, Z2), pool_in(Z3, name="full", limits={"cpu": 0})]},
    ),
    skewed("hosts of their own", count=4, per_domain=[1, 1, 1, 1], key=HOSTNAME, spread=[BY_HOST]),
    skewed("two on a host", count=4, per_domain=[2, 2], key=HOSTNAME, spread=[spread(WEB, HOSTNAME, 2)]),
    Scenario(name="revisions are counted apart", pods=revisions("revision"), skew=(HOSTNAME, (2, 2))),
    Scenario(name="a listed label that pods do not have", pods=revisions("unknown"), skew=(HOSTNAME, (1, 1, 1, 1))),
    skewed(
        "domains of nodes the pods may not use, counted",
        count=5,
        per_domain=[1],
        key="rack",
        unplaced=4,
        selector={"team": "us"},
        spread=[spread(WEB, "rack", affinity_policy="Ignore")],
        given=MISMATCHED,
    ),
    skewed(
        "domains of nodes the pods may not use, left out",
        count=5,
        per_domain=[5],
        key="rack",
        selector={"team": "us"},
        spread=[spread(WEB, "rack")],
        given=MISMATCHED,
    ),
    skewed(
        "a zone behind a taint, counted", count=4, per_domain=[1, 1], unplaced=2, spread=[BY_ZONE], given=UNTAINTED_ONLY
    ),
    skewed(
        "a zone behind a taint, left out",
        count=4,
        per_domain=[2, 2],
        spread=[spread(WEB, taints_policy="Honor")],
        given=UNTAINTED_ONLY,
    ),
    skewed(
        "only the zones that pods insist on",
        count=6,
        per_domain=[3, 3],
        require=[(ZONE, "In", Z1, Z2)],
        spread=[BY_ZONE],
    ),
    skewed(
        "one pod for a zone so far empty",
        count=1,
        per_domain=[1, 3, 3],
        require=[(ZONE, "In", Z2, Z3)],
        spread=[BY_ZONE],
        given=held(3, 3, 0),
    ),
    skewed("five pods for any zone", count=5, per_domain=[4, 4, 4], spread=[BY_ZONE], given=held(3, 3, 1)),
    skewed("a key that no node has", count=2, unplaced=2, spread=[spread(WEB, "rack")]),
    skewed(
        "a selector that is not there counts none", count=5, per_domain=[5], spread=[spread(None)], selector={ZONE: Z1}
    ),
    skewed(
        "pods that the rule does not count",
        count=4,
        per_domain=[4],
        spread=[spread({"app": "other"})],
        selector={ZONE: Z1},
    ),
    skewed("zone and host at once", count=6, per_domain=[1, 1, 1, 1, 1, 1], key=HOSTNAME, spread=[BY_ZONE, BY_HOST]),
    skewed(
        "zone and capacity type at once",
        count=4,
        per_domain=[2, 2],
        key=CAPACITY_TYPE,
        spread=[BY_ZONE, BY_CAPACITY],
        given={"pools": [pool_in(Z1, Z2)]},
    ),
    skewed(
        "the emptiest zone has no offering and is passed over",
        count=4,
        per_domain=[2, 2],
        selector={CAPACITY_TYPE: SPOT},
        spread=[spread(WEB, max_skew=2)],
    ),
    skewed(
        "another namespace is not counted",
        count=2,
        per_domain=[1, 2],
        spread=[BY_ZONE],
        given={"nodes": [shut("n1")], "bound": [pod("web-1", namespace="other", node="n1")]},
    ),
    skewed(
        "pods that are about to end are not counted",
        count=3,
        per_domain=[1, 1, 2],
        spread=[BY_ZONE],
        given=held(1, deleted=LONG_AGO),
    ),
]


def together(answer: PlacementResult) -> bool:
    return answer.placed["default/web-1"] == answer.placed["default/db-1"]


def chain(*order: str) -> list[Pod]:
    links = {"db": "web", "web": "cache", "cache": "ui"}
    return [pod(f"{app}-1", near=[affinity_to({"app": links[app]}, HOSTNAME)] if app in links else []) for app in order]


def with_others(name: str, others: list[Pod], count: int = 1, **rest: Any) -> Scenario:
    known = {key: rest.pop(key) for key in list(rest) if key in Scenario.__dataclass_fields__}
    return Scenario(name=name, pods=[*pods(count, **rest), *others], **known)


NEAR_DB = affinity_to({"app": "db"}, HOSTNAME)
AFFINITY = [
    with_others(
        "the host of another pod of the batch",
        [*pods(1, app="db"), *pods(10, app="x", spread=[spread({"app": "x"}, HOSTNAME)])],
        near=[NEAR_DB],
        check=together,
    ),
    with_others("affinity to a pod that is nowhere", [], near=[NEAR_DB], unplaced=1),
    with_others("a preference to be near a pod that is nowhere", [], prefer_near=[(1, NEAR_DB)], new_nodes=1),
    Scenario(name="a chain of affinities", pods=chain("db", "web", "cache", "ui"), new_nodes=1),
    Scenario(name="a chain of affinities the other way round", pods=chain("ui", "cache", "web", "db"), new_nodes=1),
    skewed("the first of a group chooses a zone for all", count=5, per_domain=[5], near=[AWAY_BY_ZONE]),
    skewed("a group stays where it is", count=2, per_domain=[3], near=[AWAY_BY_ZONE], given=held(0, 1, 0)),
    skewed(
        "a group that may not be where it is starts no second one",
        count=2,
        per_domain=[1],
        unplaced=2,
        near=[AWAY_BY_ZONE],
        selector={ZONE: Z1},
        given=held(0, 1, 0),
    ),
    skewed("a group on one host", count=3, per_domain=[3], key=HOSTNAME, near=[AWAY]),
    skewed(
        "a group on one host that holds no more",
        count=6,
        per_domain=[5],
        key=HOSTNAME,
        unplaced=1,
        near=[AWAY],
        selector={ARCH: "amd64"},
    ),
    with_others(
        "affinity to a pod whose zone is open",
        pods(1, app="db", cpu=1),
        near=[affinity_to({"app": "db"}, ZONE)],
        unplaced=["web-1"],
    ),
    with_others(
        "affinity to a pod in one zone",
        pods(1, app="db", cpu=1, selector={ZONE: Z2}),
        near=[affinity_to({"app": "db"}, ZONE)],
        selector={ZONE: Z2},
        new_nodes=1,
    ),
    Scenario(
        name="affinity across namespaces",
        pods=[pod("web-1", near=[affinity_to({"app": "db"}, ZONE, namespace_selector={"team": "data"})])],
        others={"namespaces": (namespace("store", team="data"),)},
        nodes=[shut("n1", Z3)],
        bound=[pod("db-1", namespace="store", node="n1")],
        skew=(ZONE, (1,)),
    ),
]

ANTI = [
    skewed("one pod on a host", count=3, per_domain=[1, 1, 1], key=HOSTNAME, anti=[AWAY]),
    with_others(
        "targets in all three zones", [], anti=[affinity_to({"app": "web"}, ZONE)], **held(1, 1, 1), unplaced=1
    ),
    with_others(
        "a target whose zone is open",
        pods(1, app="db", cpu=1),
        anti=[affinity_to({"app": "db"}, ZONE)],
        unplaced=["web-1"],
    ),
    with_others("one pod per zone, first run", [], 3, anti=[AWAY_BY_ZONE], unplaced=2, new_nodes=1),
    with_others(
        "one pod per zone, second run",
        [],
        3,
        anti=[AWAY_BY_ZONE],
        unplaced=2,
        new_nodes=1,
        **held(1, anti=[AWAY_BY_ZONE]),
    ),
    with_others(
        "one pod per zone, third run",
        [],
        3,
        anti=[AWAY_BY_ZONE],
        unplaced=2,
        new_nodes=1,
        **held(1, 1, anti=[AWAY_BY_ZONE]),
    ),
    with_others(
        "one pod per zone, all taken",
        [],
        3,
        anti=[AWAY_BY_ZONE],
        unplaced=3,
        new_nodes=0,
        **held(1, 1, 1, anti=[AWAY_BY_ZONE]),
    ),
    with_others(
        "pods of one zone each",
        pods(1, selector={ZONE: Z2}, anti=[AWAY_BY_ZONE], first=2),
        selector={ZONE: Z1},
        anti=[AWAY_BY_ZONE],
        new_nodes=2,
    ),
    with_others(
        "a running pod keeps others away",
        [],
        nodes=[node("n1")],
        bound=[pod("db-1", node="n1", anti=[AWAY])],
        new_nodes=1,
    ),
    with_others(
        "a running pod keeps others out of its zone",
        [],
        selector={ZONE: Z1},
        nodes=[shut("n1", Z1)],
        bound=[pod("db-1", node="n1", anti=[AWAY_BY_ZONE])],
        unplaced=1,
    ),
    with_others(
        "a pod on a node that goes keeps nobody away",
        [],
        nodes=[node("n1"), node("n2")],
        bound=[pod("db-1", node="n1", anti=[AWAY])],
        asked={"gone": ["n1"]},
        placed_on={"web-1": "n2"},
    ),
    with_others("a pod of the batch keeps others away", pods(1, app="db", cpu=1, anti=[AWAY]), new_nodes=2),
    with_others(
        "a node in a zone no pool offers is fine for a pod that others avoid",
        pods(1, app="db", cpu=1, anti=[AWAY_BY_ZONE], selector={ZONE: Z1}),
        nodes=[node("n1", zone="elsewhere")],
        pools=[pool_in(Z1)],
        placed_on={"web-1": "n1"},
    ),
    with_others(
        "a node without the label is no place for a rule about it",
        [],
        anti=[AWAY_BY_ZONE],
        nodes=[node("n1", zone=None)],
        new_nodes=1,
    ),
    with_others(
        "a preference to be apart is given up",
        [],
        2,
        prefer_anti=[(1, AWAY)],
        nodes=[node("n1")],
        pools=[],
        new_nodes=0,
    ),
    with_others(
        "preferences ignored",
        [],
        2,
        prefer_anti=[(1, AWAY)],
        new_nodes=1,
        asked={"options": Options(preferences=Preferences.IGNORE)},
    ),
    with_others("preferences respected", [], 2, prefer_anti=[(1, AWAY)], new_nodes=2),
    with_others(
        "a preference for a zone and another to be apart",
        [],
        2,
        prefer=[(1, node_term((ZONE, "In", Z1)))],
        prefer_anti=[(1, AWAY)],
        new_nodes=2,
        check=lambda answer: all(new.requirements[ZONE].values == {Z1} for new in answer.new_nodes),
    ),
]

TOPOLOGY = [*SPREAD, *AFFINITY, *ANTI]
