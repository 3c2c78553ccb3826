"""What kubelets reserve, compared with figures of real nodes that public documents show."""

from tests.tables import row, table

from karpool.catalog.overhead import (
    AKS_CPU_BEYOND,
    AKS_CPU_STEPS,
    EVICTION_MIB,
    aks_reserved_mib,
    eks_pods,
    eks_room,
    gke_reserved_mib,
    reserved_cpu,
)
from karpool.catalog.price_list import shipped_machines
from karpool.wire.quantity import parse_quantity


@table(
    row(name="t3.micro", pods=4, capacity=938840, allocatable=530264),
    row(name="t3.xlarge", pods=58, capacity=16181724, allocatable=15164892),
    row(name="m5.xlarge", pods=58, capacity=15896988, allocatable=14880156),
)
def test_eks_nodes_keep_as_much_as_real_ones(name: str, pods: int, capacity: int, allocatable: int) -> None:
    machine = shipped_machines("aws")[name]
    assert eks_pods(machine, prefixes=False) == pods
    assert eks_room(machine, pods).overhead["memory"] == parse_quantity(f"{capacity - allocatable}Ki")


@table(row(name="m5.large", few=29, many=110), row(name="c6in.32xlarge", few=394, many=250))
def test_prefixes_let_eks_nodes_run_more_pods_up_to_a_limit(name: str, few: int, many: int) -> None:
    machine = shipped_machines("aws")[name]
    assert [eks_pods(machine, prefixes=prefixes) for prefixes in (False, True)] == [few, many]


def test_a_gke_node_keeps_about_as_much_as_a_real_one() -> None:
    capacity, allocatable = 15399244 // 1024, 12699980 // 1024
    assert abs(capacity - gke_reserved_mib(capacity) - allocatable) < allocatable / 100


@table(
    row(capacity=28740840 // 1024, pods=250, reserved=5050),
    row(capacity=8000, pods=30, reserved=650),
    row(capacity=4000, pods=70, reserved=1000),
)
def test_aks_nodes_keep_what_its_documents_say(capacity: int, pods: int, reserved: int) -> None:
    assert aks_reserved_mib(capacity, pods) == reserved + EVICTION_MIB


@table(*(row(cores=c, millis=m) for c, m in ((1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740))))
def test_aks_reserves_cpu_by_cores(cores: int, millis: int) -> None:
    assert reserved_cpu(cores, AKS_CPU_STEPS, AKS_CPU_BEYOND) == parse_quantity(f"{millis}m")
