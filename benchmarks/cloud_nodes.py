"""Nodes as the clouds make them: names, labels, taints, provider ids, and what their kubelets leave for pods."""

import string
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
from cloud_fleets import Cloud, Fleet
from tests.factories.clouds import Manifest, aks_node, eks_node, gke_node, node, openshift_node

from karpool.catalog.builtin import cloud_types
from karpool.catalog.instance_types import InstanceType
from karpool.catalog.places import CloudRegion
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.reading.kinds import KINDS
from karpool.wire.quantity import parse_quantity

_ZONE_IDS: Final = {"a": "az4", "b": "az1", "c": "az2"}
_REGION_CODES: Final = {"eu-west-1": "euw1", "us-west-2": "usw2", "us-east-2": "use2"}
_PROVIDER_LABELS: Final = ("karpenter.k8s.aws/", "eks.amazonaws.com/", "karpenter.azure.com/")
_OTHER_AMOUNTS: Final = {"ek-standard-16": (16, 64)}
"""Cores and GiB of machines that no price list has."""


class Seat(NamedTuple):
    """Where the next node goes: its number in the cluster, its zone, its machine, and random letters for its name."""

    cloud: Cloud
    fleet: Fleet
    number: int
    zone: str
    type: str
    letters: str
    created: str


def new_node(seat: Seat, random: Random) -> Node:
    """A node of a fleet."""
    manifest = _MAKERS[seat.cloud.style](seat, _settings(seat, random))
    return KINDS["Node"].decoder.decode(msgspec.json.encode(manifest))


def letters(random: Random, count: int, alphabet: str = string.ascii_lowercase + string.digits) -> str:
    """Random letters of a name."""
    return "".join(random.choice(alphabet) for _ in range(count))


@lru_cache(maxsize=16)
def machines_of(provider: str, region: str) -> Mapping[str, InstanceType]:
    """The machines of a region, by name."""
    return {entry.name: entry for entry in cloud_types(provider, (CloudRegion(provider, region),))} if provider else {}


def _settings(seat: Seat, random: Random) -> dict[str, Any]:
    """What all makers of nodes are told."""
    capacity, allocatable = _amounts(seat, random)
    return {
        "type": seat.type,
        "zone": seat.zone,
        "arch": seat.fleet.arch,
        "labels": _labels(seat),
        "taints": list(seat.fleet.taints),
        "capacity": capacity,
        "allocatable": allocatable,
        "created": seat.created,
    }


def _amounts(seat: Seat, random: Random) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable: as the cloud's kubelets have it, and a little off, as no two nodes report the same."""
    entry = machines_of(seat.cloud.provider, seat.cloud.region).get(seat.type)
    if entry is None:
        cores, gibibytes = _shape(seat.type)
        whole = {"cpu": str(cores), "memory": f"{gibibytes * 1024}Mi", "pods": "110", "ephemeral-storage": "90Gi"}
        return whole, {**whole, "memory": f"{gibibytes * 1024 - 100 - random.randrange(64)}Mi"}
    missing = random.randrange(24) * 1024**2
    amounts = ({key: str(value) for key, value in found.items()} for found in (entry.capacity, entry.allocatable))
    capacity, allocatable = ({**found, "memory": str(int(found["memory"]) - missing)} for found in map(_plain, amounts))
    return capacity, allocatable


def _plain(amounts: Mapping[str, str]) -> dict[str, str]:
    """Memory in bytes, so that some can be taken away."""
    return {**amounts, "memory": str(parse_quantity(amounts["memory"]).units)}


def _shape(kind: str) -> tuple[int, int]:
    if kind in _OTHER_AMOUNTS:
        return _OTHER_AMOUNTS[kind]
    cores, _, gibibytes = kind.partition("x")
    return (int(cores), int(gibibytes)) if gibibytes else (4, 8)


def _labels(seat: Seat) -> dict[str, str]:
    """The labels of the fleet, and those of Karpenter on nodes that it launched."""
    fleet = seat.fleet
    if not fleet.pooled:
        return dict(fleet.labels)
    group, kind = seat.cloud.node_class
    entry = machines_of(seat.cloud.provider, seat.cloud.region)[seat.type]
    described = {
        key: next(iter(wanted.values))
        for key, wanted in entry.requirements.items()
        if key.startswith(_PROVIDER_LABELS) and len(wanted.values) == 1 and not wanted.complement
    }
    return {
        **{key: value for key, value in described.items() if key.partition("/")[0] == group},
        names.NODEPOOL: fleet.name,
        names.CAPACITY_TYPE: names.SPOT if fleet.spot else names.ON_DEMAND,
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
        f"{group}/{kind.lower()}": "default",
        **fleet.labels,
    }


# -- what each cloud does --------------------------------------------------------------------------------------------


def _node(name: str, settings: Mapping[str, Any], labels: Mapping[str, str] = {}, **changes: Any) -> Manifest:
    """A node with labels of its cloud besides those of its fleet."""
    merged = {**labels, **settings["labels"]}
    return node(name, merged, **{key: value for key, value in {**settings, **changes}.items() if key != "labels"})


def _address(number: int) -> str:
    return f"10-{number // 65536}-{number // 256 % 256}-{number % 256}"


def _aws(seat: Seat, settings: dict[str, Any]) -> dict[str, Any]:
    zone_id = f"{_REGION_CODES[seat.cloud.region]}-{_ZONE_IDS[seat.zone[-1]]}"
    labels = {names.ZONE_ID: zone_id, **settings["labels"]}
    return {**settings, "labels": labels, "provider": f"aws:///{seat.zone}/i-0{seat.letters}"}


def _eks(seat: Seat, settings: dict[str, Any]) -> Manifest:
    fleet, name = seat.fleet, f"ip-{_address(seat.number)}.{seat.cloud.region}.compute.internal"
    if fleet.manager == "fargate":
        labels = {"eks.amazonaws.com/compute-type": "fargate"}
        taint = {"key": "eks.amazonaws.com/compute-type", "value": "fargate", "effect": "NoSchedule"}
        provider = f"aws:///{seat.zone}/{seat.letters}/fargate-{name}"
        return _node(f"fargate-{name}", settings, labels, type="", taints=[taint], provider=provider)
    settings = {**_aws(seat, settings), "os": "windows" if fleet.guests == "windows" else "linux"}
    if fleet.pooled:
        return _node(name, settings)
    return eks_node(name, fleet.name, spot=fleet.spot, **settings)


def _auto(seat: Seat, settings: dict[str, Any]) -> Manifest:
    labels = {"eks.amazonaws.com/compute-type": "auto", "app.kubernetes.io/managed-by": "eks"}
    return _node(f"i-0{seat.letters}", _aws(seat, settings), labels)


def _gke(seat: Seat, settings: dict[str, Any]) -> Manifest:
    fleet, autopilot = seat.fleet, seat.fleet.manager == "autopilot"
    hashed = migs_of(seat.cloud, fleet)[seat.zone]
    name = f"{'gk3' if autopilot else 'gke'}-shop-{fleet.name}-{hashed}-{seat.letters[:4]}"
    accelerator = {"cloud.google.com/gke-accelerator": "nvidia-l4"} if fleet.guests == "gpu" else {}
    labels = {
        "cloud.google.com/machine-family": seat.type.partition("-")[0],
        "cloud.google.com/gke-boot-disk": "pd-balanced",
        "topology.gke.io/zone": seat.zone,
        **accelerator,
        **settings["labels"],
    }
    provider = f"gce://shop-prod/{seat.zone}/{name}"
    return gke_node(name, fleet.name, spot=fleet.spot, **{**settings, "labels": labels, "provider": provider})


def migs_of(cloud: Cloud, fleet: Fleet) -> dict[str, str]:
    """The hash in the names of a pool's nodes and of its instance group, zone by zone."""
    return {zone: letters(Random(f"{fleet.name} {zone}"), 8, "0123456789abcdef") for zone in cloud.zones}


def vmss_of(fleet: Fleet) -> str:
    """The scale set of an AKS node pool."""
    return f"aks-{fleet.name}-{letters(Random(fleet.name), 8, string.digits)}-vmss"


def _base36(number: int) -> str:
    digits = string.digits + string.ascii_lowercase
    text = ""
    while number or not text:
        number, last = divmod(number, 36)
        text = digits[last] + text
    return text.rjust(6, "0")


_SUBSCRIPTION: Final = "/subscriptions/00000000-1111-2222-3333-444444444444/resourceGroups/mc_shop_shop"


def _aks(seat: Seat, settings: dict[str, Any]) -> Manifest:
    fleet = seat.fleet
    if fleet.manager == "virtual":
        taint = {"key": "virtual-kubelet.io/provider", "value": "azure", "effect": "NoSchedule"}
        labels = {"type": "virtual-kubelet", "kubernetes.io/role": "agent"}
        return _node("virtual-node-aci-linux", settings, labels, zone="", type="", taints=[taint])
    if fleet.pooled:
        name = f"aks-{fleet.name}-{seat.letters[:5]}"
        machine = f"azure://{_SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines/{name}"
        return _node(name, settings, provider=machine)
    scale_set = vmss_of(fleet)
    provider = f"azure://{_SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachineScaleSets/{scale_set}/{seat.number}"
    settings = {**settings, "provider": provider, "os": "windows" if fleet.guests == "windows" else "linux"}
    return aks_node(scale_set + _base36(seat.number), fleet.name, spot=fleet.spot, **settings)


def _openshift(seat: Seat, settings: dict[str, Any]) -> Manifest:
    fleet, name = seat.fleet, f"ip-{_address(seat.number)}.{seat.cloud.region}.compute.internal"
    role = "master" if fleet.manager == "server" else "worker"
    zone = next((zone for zone in seat.cloud.zones if fleet.name.endswith(zone)), seat.zone)
    settings = _aws(seat._replace(zone=zone), {**settings, "zone": zone})
    machine = f"openshift-machine-api/shop-7k2px-{fleet.name}-{seat.letters[:5]}"
    return openshift_node(name, "", role=role, annotations={"machine.openshift.io/machine": machine}, **settings)


def _k3s(seat: Seat, settings: dict[str, Any]) -> Manifest:
    name = f"{seat.fleet.name}-{seat.number}"
    return _node(name, settings, type="k3s", provider=f"k3s://{name}")


def _kind(seat: Seat, settings: dict[str, Any]) -> Manifest:
    name = f"kind-{seat.fleet.name}{seat.number or ''}"
    return _node(name, settings, type="", provider=f"kind://docker/kind/{name}")


def _capi(seat: Seat, settings: dict[str, Any]) -> Manifest:
    fleet = seat.fleet
    group = {"cluster.x-k8s.io/deployment-name": fleet.name} if fleet.manager == "group" else {}
    labels = {names.REGION: seat.cloud.region, **group}
    return _node(f"{fleet.name}-{seat.letters[:5]}", settings, labels, type="", provider=f"vsphere://{seat.letters}")


_MAKERS: Final = {
    "eks": _eks,
    "auto": _auto,
    "gke": _gke,
    "aks": _aks,
    "openshift": _openshift,
    "k3s": _k3s,
    "kind": _kind,
    "capi": _capi,
}
