from msgspec.structs import replace
from tests.factories import pod

from karpool.model.default_spread import with_default_spread
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import SpreadConstraint
from karpool.model.selectors import LabelSelector, SelectorExpression
from karpool.model.workloads import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from karpool.wire.objects import Metadata, OwnerReference

BY_ZONE = SpreadConstraint(max_skew=1, topology_key="topology.kubernetes.io/zone")
BY_HOST = SpreadConstraint(max_skew=2, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway")
DEFAULTS = (BY_ZONE, BY_HOST)
LABELS = {"app": "web", "tier": "front"}


def owned(kind: str | None, name: str = "web", *, controller: bool = True, labels: dict[str, str] = LABELS) -> Pod:
    owners = () if kind is None else (OwnerReference(kind=kind, name=name, controller=controller),)
    bare = pod("web-1", labels=labels, owner=None)
    return replace(bare, metadata=replace(bare.metadata, owner_references=owners))


def meta(name: str, namespace: str = "default") -> Metadata:
    return Metadata(name=name, namespace=namespace)


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return Service(metadata=meta(name, namespace), spec=ServiceSpec(selector=selector))


def replica_set(selector: LabelSelector | None = None) -> ReplicaSet:
    return ReplicaSet(metadata=meta("web"), spec=WorkloadSpec(selector=selector or LabelSelector({"app": "web"})))


def given(one: Pod, **objects: object) -> tuple[SpreadConstraint, ...]:
    """The constraints that a pod has after all."""
    answer = with_default_spread(Objects(pods=(one,), **objects), DEFAULTS)  # type: ignore[arg-type]
    return answer.pods[0].spec.topology_spread_constraints


def selector_of(constraints: tuple[SpreadConstraint, ...]) -> LabelSelector | None:
    assert [replace(constraint, label_selector=None) for constraint in constraints] == list(DEFAULTS)
    assert len({str(constraint.label_selector) for constraint in constraints}) == 1
    return constraints[0].label_selector


def equals(key: str, value: str) -> SelectorExpression:
    return SelectorExpression(key, "In", (value,))


def test_a_pod_of_a_replica_set_is_spread_among_those_that_it_selects() -> None:
    old = SelectorExpression("tier", "NotIn", ("back",))
    found = given(owned("ReplicaSet"), replica_sets=(replica_set(LabelSelector({"app": "web"}, (old,))),))
    assert selector_of(found) == LabelSelector({}, (equals("app", "web"), old))


def test_a_pod_of_a_stateful_set_is_too() -> None:
    owner = StatefulSet(metadata=meta("web"), spec=WorkloadSpec(selector=LabelSelector({"app": "web"})))
    assert selector_of(given(owned("StatefulSet"), stateful_sets=(owner,))) == LabelSelector(
        {}, (equals("app", "web"),)
    )


def test_the_selectors_of_services_are_merged_and_hold_besides_that_of_the_controller() -> None:
    services = (service("a", {"app": "web"}), service("b", {"tier": "front"}), service("c", {"app": "other"}))
    found = given(owned("ReplicaSet"), replica_sets=(replica_set(),), services=services)
    assert selector_of(found) == LabelSelector(LABELS, (equals("app", "web"),))


def test_a_replication_controller_overrides_services() -> None:
    owner = ReplicationController(metadata=meta("web"), spec=ReplicationControllerSpec(selector={"app": "web"}))
    found = given(
        owned("ReplicationController"), replication_controllers=(owner,), services=(service("b", {"tier": "front"}),)
    )
    assert selector_of(found) == LabelSelector(LABELS)


def test_a_pod_without_a_controller_is_spread_if_a_service_selects_it() -> None:
    assert selector_of(given(owned(None), services=(service("a", {"app": "web"}),))) == LabelSelector({"app": "web"})


def test_nothing_is_deduced_from_what_does_not_select_the_pod() -> None:
    elsewhere = (service("a", {"app": "web"}, "other"), service("b", None), service("c", {"app": "db"}))
    assert given(owned(None), services=elsewhere) == ()
    assert given(owned(None), services=(service("a", {}),)) == ()
    assert given(owned("ReplicaSet", controller=False), replica_sets=(replica_set(),)) == ()
    assert given(owned("ReplicaSet", "gone"), replica_sets=(replica_set(),)) == ()
    assert given(owned("Job"), replica_sets=(replica_set(),)) == ()


def test_a_pod_with_a_constraint_of_its_own_keeps_to_it() -> None:
    own = SpreadConstraint(max_skew=5, topology_key="rack")
    one = replace(owned("ReplicaSet"), spec=replace(owned(None).spec, topology_spread_constraints=(own,)))
    assert given(one, replica_sets=(replica_set(),)) == (own,)
