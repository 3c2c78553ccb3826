import dataclasses
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.factories import LONG_AGO, affinity_to, claim_for, default_catalog, node, node_claim, node_pool, pod
from tests.factories.gangs import members
from tests.inflight import with_claims_launched

from karpool.catalog.instance_types import Catalog, Offering
from karpool.cluster.snapshot import Snapshot
from karpool.model import labels as names
from karpool.model.nodepool import NodeClaim, as_requirements
from karpool.model.objects import Objects
from karpool.model.requirements import Requirements
from karpool.packing.engine import Engine
from karpool.provisioning.inflight import as_launched
from karpool.provisioning.provision import ProvisioningResult
from karpool.provisioning.provision import provision as provision_on

NOW = LONG_AGO + timedelta(hours=1)
CATALOG = default_catalog()
PENDING = tuple(pod(f"web-{number}", cpu="1", memory="1Gi", pending=True) for number in range(3))


def provision(
    objects: Objects, catalog: Catalog, now: datetime, *, moving: frozenset[str] = frozenset()
) -> ProvisioningResult:
    """The nodes to create for pending pods, and for bound pods that are `moving`."""
    engine = Engine(Snapshot(with_claims_launched(objects, catalog)), catalog)
    pending = {pod.key for pod in objects.pods if pod.provisionable}
    return provision_on(engine, objects, pending | moving, now)


def types_of(claim: NodeClaim) -> frozenset[str]:
    return as_requirements(claim.spec.requirements)[names.INSTANCE_TYPE].values


def test_pending_pods_get_a_node() -> None:
    made = provision(Objects(pods=PENDING, node_pools=(node_pool(),)), CATALOG, NOW)
    (claim,) = made.claims
    assert claim.name.startswith("default-")
    assert "default" in types_of(claim)
    assert "small" not in types_of(claim)
    assert {key: str(amount) for key, amount in claim.spec.resources.requests.items()} == {
        "cpu": "3",
        "memory": "3Gi",
        "pods": "3",
    }
    assert made.unschedulable == ()
    assert made.nominations == {claim.name: frozenset(pod.key for pod in PENDING)}


def test_the_same_question_gets_the_same_answer() -> None:
    objects = Objects(pods=PENDING, node_pools=(node_pool(),))
    assert provision(objects, CATALOG, NOW) == provision(objects, CATALOG, NOW)
    later = provision(objects, CATALOG, NOW + timedelta(seconds=1))
    assert later.claims[0].name != provision(objects, CATALOG, NOW).claims[0].name


def test_nodes_that_exist_are_filled_first() -> None:
    made = node("n1")
    objects = Objects(pods=PENDING, nodes=(made,), node_claims=(claim_for(made),), node_pools=(node_pool(),))
    result = provision(objects, CATALOG, NOW)
    assert (result.claims, result.nominations) == ((), {"n1": frozenset(pod.key for pod in PENDING)})


@pytest.mark.parametrize("launched", [False, True])
def test_a_node_on_its_way_is_counted_on(*, launched: bool) -> None:
    objects = Objects(pods=PENDING, node_pools=(node_pool(),))
    (claim,) = provision(objects, CATALOG, NOW).claims
    if launched:
        claim = as_launched(claim, CATALOG)
    result = provision(replace_claims(objects, claim), CATALOG, NOW)
    assert (result.claims, result.nominations) == ((), {claim.name: frozenset(pod.key for pod in PENDING)})


def replace_claims(objects: Objects, *claims: NodeClaim) -> Objects:
    return Objects(pods=objects.pods, node_pools=objects.node_pools, node_claims=claims)


def test_a_claim_that_launches_is_seen_as_its_cheapest_type() -> None:
    wanted = [
        (names.INSTANCE_TYPE, "In", "arm", "default", "small"),
        (names.CAPACITY_TYPE, "In", "on-demand"),
    ]
    claim = node_claim("new", launched=False, requirements=wanted)
    seen = as_launched(claim, CATALOG)
    assert seen.metadata.labels[names.INSTANCE_TYPE] == "small"
    assert seen.metadata.labels[names.CAPACITY_TYPE] == "on-demand"
    assert str(seen.status.allocatable["cpu"]) == "1900m"
    unknown = node_claim("odd", launched=False, requirements=[(names.INSTANCE_TYPE, "In", "nobody-sells-it")])
    assert as_launched(unknown, CATALOG) == unknown


def test_pods_of_nodes_that_go_get_a_node_too() -> None:
    made = node("n1", taints=["karpenter.sh/disrupted"])
    moving = pod("api-1", node="n1", cpu="2", memory="2Gi")
    objects = Objects(pods=(moving,), nodes=(made,), node_claims=(claim_for(made),), node_pools=(node_pool(),))
    assert provision(objects, CATALOG, NOW).claims == ()
    result = provision(objects, CATALOG, NOW, moving=frozenset({"default/api-1"}))
    assert result.nominations == {claim.name: frozenset({"default/api-1"}) for claim in result.claims}
    assert len(result.claims) == 1


def test_a_pod_that_fits_nowhere_says_why() -> None:
    huge = pod("huge-1", cpu="500", pending=True)
    result = provision(Objects(pods=(huge,), node_pools=(node_pool(),)), CATALOG, NOW)
    assert result.claims == ()
    ((key, reason),) = result.unschedulable
    assert key == "default/huge-1"
    assert reason.code == "PodsWouldNotFit"
    assert "cpu" in reason.message.lower()


def test_limits_bound_what_is_asked_for() -> None:
    many = tuple(pod(f"web-{number}", cpu="3", memory="1Gi", pending=True) for number in range(4))
    limited = node_pool(limits={"nodes": 2}, requirements=[(names.ARCH, "In", "amd64")])
    result = provision(Objects(pods=many, node_pools=(limited,)), CATALOG, NOW)
    assert len(result.claims) == 2
    assert len({claim.name for claim in result.claims}) == 2
    assert len(result.unschedulable) == 2


def test_hashes_are_copied_from_the_pool() -> None:
    stamps = {names.NODEPOOL_HASH: "h", names.NODEPOOL_HASH_VERSION: "v3"}
    pool = node_pool()
    stamped = replace(pool, metadata=replace(pool.metadata, annotations=stamps))
    (claim,) = provision(Objects(pods=PENDING, node_pools=(stamped,)), CATALOG, NOW).claims
    assert claim.metadata.annotations == stamps


def test_nothing_waits_nothing_comes() -> None:
    bound = pod("web-1", node="n1")
    assert provision(Objects(pods=(bound,), node_pools=(node_pool(),)), CATALOG, NOW).claims == ()


def reserving(units: int, *, available: bool = True, others: bool = False) -> Catalog:
    """One type, sold as a reservation of so many nodes, and perhaps otherwise."""
    entry = CATALOG.by_name["default"]
    zone = entry.offerings[0].zone
    place = {names.ZONE: zone, names.CAPACITY_TYPE: names.RESERVED, names.RESERVATION_ID: "r-1"}
    held = Offering(Requirements.of_labels(place), 0.0, available, reservation_id="r-1", reservation_capacity=units)
    own = entry.requirements.without(names.CAPACITY_TYPE)
    offerings = (held, *(entry.offerings if others else ()))
    return Catalog((dataclasses.replace(entry, requirements=own, offerings=offerings),))


@pytest.mark.parametrize(
    ("catalog", "claims", "deferred", "unschedulable"),
    [
        (reserving(0), 0, 3, 0),
        (reserving(0, available=False), 0, 0, 3),
        (reserving(0, others=True), 1, 0, 0),
        (reserving(1), 1, 0, 0),
    ],
    ids=["full", "full and gone", "full, and others are sold", "a slot is left"],
)
def test_pods_wait_for_a_reservation_that_is_full_and_are_not_counted_as_unschedulable(
    catalog: Catalog, claims: int, deferred: int, unschedulable: int
) -> None:
    made = provision(Objects(pods=PENDING, node_pools=(node_pool(),)), catalog, NOW)
    assert (len(made.claims), len(made.deferred), len(made.unschedulable)) == (claims, deferred, unschedulable)


def test_a_pod_that_another_one_took_the_last_slot_from_waits_and_one_that_fits_nowhere_does_not() -> None:
    apart = affinity_to(labels={"app": "web"}, key=names.HOSTNAME)
    pods = [pod(f"web-{number}", cpu="1", anti=[apart], pending=True) for number in range(2)]
    huge = pod("huge-1", cpu="1000", pending=True)
    made = provision(Objects(pods=(*pods, huge), node_pools=(node_pool(),)), reserving(1), NOW)
    assert (len(made.claims), made.deferred) == (1, ("default/web-1",))
    assert [key for key, _ in made.unschedulable] == ["default/huge-1"]


@pytest.mark.parametrize(("limit", "claims"), [("12", 3), ("8", 0)])
def test_no_claim_is_made_for_a_part_of_a_gang(limit: str, claims: int) -> None:
    pool = node_pool(limits={"cpu": limit}, requirements=[(names.INSTANCE_TYPE, "In", "default")])
    made = provision(Objects(pods=members("train", 3, cpu="3"), node_pools=(pool,)), CATALOG, NOW)
    assert len(made.claims) == claims
    why = "3 pods need room at once (all that wait, for nobody says how many it needs), and there is room for 2"
    message = f"no node can take it: its gang default/train runs only together: {why}"
    assert [reason.message for _, reason in made.unschedulable] == [message] * (3 - claims)


def test_what_a_gang_does_not_get_others_may_have() -> None:
    pool = node_pool(limits={"cpu": "8"}, requirements=[(names.INSTANCE_TYPE, "In", "default")])
    pods = (*members("train", 3, cpu="3"), pod("web-9", cpu="3", pending=True))
    made = provision(Objects(pods=pods, node_pools=(pool,)), CATALOG, NOW)
    (claim,) = made.claims
    assert made.nominations == {claim.name: frozenset({"default/web-9"})}


def test_a_gang_fills_nodes_that_exist_and_new_ones() -> None:
    old = node("old", cpu="4")
    pool = node_pool(requirements=[(names.INSTANCE_TYPE, "In", "default")])
    objects = Objects(
        nodes=(old,), node_claims=(claim_for(old),), pods=members("train", 3, cpu="3"), node_pools=(pool,)
    )
    made = provision(objects, CATALOG, NOW)
    assert len(made.claims) == 2
    assert sum(map(len, made.nominations.values())) == 3
