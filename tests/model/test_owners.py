"""Whose a pod is."""

from msgspec.structs import replace
from tests.factories import pod
from tests.tables import row, table

from karpool.model.owners import workload_of
from karpool.wire.objects import Metadata, OwnerReference


def owned(kind: str, name: str, **labels: str) -> Metadata:
    owners = (OwnerReference(kind="Sidecar", name="x"), OwnerReference(kind=kind, name=name, controller=True))
    return Metadata(name="web-1", namespace="shop", labels=labels, owner_references=owners)


@table(
    row(kind="ReplicaSet", name="web-7f9c", workload="Deployment shop/web"),
    row(kind="ReplicaSet", name="bare", workload="Deployment shop/bare"),
    row(kind="Job", name="export", workload="Job shop/export"),
    row(kind="Job", name="export-28391820", workload="CronJob shop/export"),
    row(kind="Job", name="export-28391820-retry", workload="Job shop/export-28391820-retry"),
    row(kind="StatefulSet", name="db", workload="StatefulSet shop/db"),
)
def test_a_pod_belongs_to_the_workload_that_people_know(kind: str, name: str, workload: str) -> None:
    assert str(workload_of(replace(pod(), metadata=owned(kind, name)))) == workload


def test_the_hash_of_a_template_may_have_a_dash() -> None:
    labels = {"pod-template-hash": "a-b"}
    made = replace(pod(), metadata=owned("ReplicaSet", "web-a-b", **labels))
    assert workload_of(made).name == "web"


def test_a_pod_that_nobody_made_is_its_own_workload() -> None:
    assert str(workload_of(pod("alone", owner=None))) == "Pod default/alone"
