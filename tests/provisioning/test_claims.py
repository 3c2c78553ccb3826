import pytest
from tests.factories import Z1, Z2, daemon_set, default_catalog, instance_type, node_pool, pod, taint

from karpool.cluster.daemons import daemons
from karpool.model import labels as names
from karpool.model.nodepool import NodeClassRef, PoolRequirement, as_requirements
from karpool.model.requirements import Requirement, Requirements, one_of, requirement
from karpool.provisioning.claims import NodeRequest, claim_name, listed, new_claim, with_offered_kinds

SAMPLES = ("a", "b", "4", "9")


def test_a_claim_says_everything_its_node_must_be() -> None:
    pool = node_pool(
        labels={"team": "a"},
        annotations={names.NODEPOOL_HASH: "h", names.NODEPOOL_HASH_VERSION: "v3", "other": "x"},
        taints=["dedicated=a"],
        startup_taints=["cni"],
        expire_after="24h",
        termination_grace_period="1h",
    )
    requirements = Requirements(
        [
            (names.NODEPOOL, one_of("default")),
            (names.ZONE, one_of(Z1, Z2)),
            (names.HOSTNAME, one_of("made-up")),
            (names.REGISTERED, one_of("true")),
            (names.INITIALIZED, one_of("true")),
            ("custom", one_of("b", "a")),
        ]
    )
    request = NodeRequest(requirements, ("small", "default"), (pod("web-1"), pod("web-2")))
    claim = new_claim(pool, request, name="default-1")
    written = {entry.key: entry for entry in claim.spec.requirements}
    assert written[names.INSTANCE_TYPE] == PoolRequirement(names.INSTANCE_TYPE, "In", ("default", "small"))
    assert written[names.ZONE].values == (Z1, Z2)
    assert not {names.HOSTNAME, names.REGISTERED, names.INITIALIZED} & set(written)
    assert claim.metadata.labels == {
        "team": "a",
        "custom": "a",
        names.NODEPOOL: "default",
        "karpenter.kwok.sh/kwoknodeclass": "default",
    }
    assert claim.metadata.annotations == {names.NODEPOOL_HASH: "h", names.NODEPOOL_HASH_VERSION: "v3"}
    assert claim.metadata.finalizers == (names.TERMINATION_FINALIZER,)
    assert [(o.kind, o.name, o.uid) for o in claim.metadata.owner_references] == [
        ("NodePool", "default", "pool-default")
    ]
    assert {key: str(amount) for key, amount in claim.spec.resources.requests.items()} == {
        "cpu": "1",
        "memory": "2Gi",
        "pods": "2",
    }
    template = pool.spec.template.spec
    assert (claim.spec.taints, claim.spec.startup_taints) == ((taint("dedicated=a"),), (taint("cni"),))
    assert claim.spec.node_class_ref == NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default")
    assert claim.spec.expire_after == template.expire_after
    assert claim.spec.termination_grace_period == template.termination_grace_period


def test_relaxed_minimums_are_said() -> None:
    request = NodeRequest(Requirements(), ("small",), min_values_relaxed=True)
    assert new_claim(node_pool(), request, name="n").metadata.annotations[names.MIN_VALUES_RELAXED] == "true"


@pytest.mark.parametrize(
    ("selector", "zone", "counts"),
    [({}, one_of(Z1, Z2), True), ({names.ZONE: Z1}, one_of(Z1), True), ({names.ZONE: Z1}, one_of(Z1, Z2), False)],
)
def test_only_daemons_that_certainly_come_are_counted(
    selector: dict[str, str], zone: Requirement, *, counts: bool
) -> None:
    system = daemons([daemon_set(cpu="250m", selector=selector)], [])
    request = NodeRequest(Requirements([(names.ZONE, zone)]), ("small",))
    requests = new_claim(node_pool(), request, name="n", daemons=system).spec.resources.requests
    assert ("cpu" in requests) is counts


@pytest.mark.parametrize(
    ("rule", "spelled"),
    [
        (one_of("b", "a"), [("In", ("a", "b"))]),
        (requirement("NotIn", ["a"]), [("NotIn", ("a",))]),
        (requirement("Exists"), [("Exists", ())]),
        (requirement("DoesNotExist"), [("DoesNotExist", ())]),
        (requirement("Gt", ["3"]), [("Gt", ("3",))]),
        (requirement("Lt", ["8"]), [("Lt", ("8",))]),
        (requirement("Gt", ["3"]).intersect(requirement("Lte", ["8"])), [("Gt", ("3",)), ("Lt", ("9",))]),
        (requirement("Exists").intersect(requirement("NotIn", ["a"])), [("Exists", ()), ("NotIn", ("a",))]),
    ],
)
def test_requirements_are_written_so_that_they_read_the_same(
    rule: Requirement, spelled: list[tuple[str, tuple[str, ...]]]
) -> None:
    written = tuple(listed(Requirements([("key", rule)])))
    assert [(entry.operator, entry.values) for entry in written] == spelled
    again = as_requirements(written)["key"]
    assert [again.has(value) for value in SAMPLES] == [rule.has(value) for value in SAMPLES]


def test_any_whole_number_is_written_as_any_value() -> None:
    (written,) = listed(Requirements([("key", requirement("Gte", ["0"]))]))
    assert written.operator == "Exists"


def test_a_minimum_is_written_once() -> None:
    rule = requirement("Exists", min_values=3).intersect(requirement("NotIn", ["a"]))
    assert [entry.min_values for entry in listed(Requirements([("key", rule)]))] == [3, None]


def test_names_are_the_same_for_the_same_parts_and_short_enough() -> None:
    assert claim_name("pool", "id", "0") == claim_name("pool", "id", "0")
    assert claim_name("pool", "id", "0") != claim_name("pool", "id", "1")
    assert len(claim_name("p" * 200, "id")) <= 63


def test_only_capacity_types_that_can_be_had_are_asked_for() -> None:
    narrowed = with_offered_kinds(Requirements([(names.ZONE, one_of("test-zone-3"))]), ("small",), default_catalog())
    assert narrowed[names.CAPACITY_TYPE].values == {"on-demand"}


def test_daemons_count_with_the_least_that_they_take_on_any_of_the_types() -> None:
    system = daemons(
        [
            daemon_set("small", cpu="1", memory="1Gi", selector={names.ARCH: "amd64"}),
            daemon_set("large", cpu="3", memory="512Mi", selector={names.ARCH: "arm64"}),
        ],
        [],
    )
    types = [instance_type(arch, 8, "32Gi", arch=arch) for arch in ("amd64", "arm64")]
    request = NodeRequest(Requirements(), ("amd64", "arm64"), (pod("web-1", cpu="2", memory="1Gi"),))
    both, one = (
        new_claim(node_pool(), request, name="n", daemons=system, types=some).spec.resources.requests
        for some in (types, types[1:])
    )
    assert {name: str(amount) for name, amount in both.items()} == {"cpu": "3", "memory": "1536Mi", "pods": "2"}
    assert {name: str(amount) for name, amount in one.items()} == {"cpu": "5", "memory": "1536Mi", "pods": "2"}
