"""A pod's rules about nodes and other pods, and the order in which its preferences are relaxed.

Preferences are requirements until they cannot be met. `ladder` lists the levels: the first holds everything, each
further one relaxes one preference, the last ones hold only what is required.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec

from karpool.cluster.codes import GroupKind
from karpool.cluster.groups import Group, NodeFilter, affinity_group, spread_group, together
from karpool.cluster.volumes import NO_VOLUMES, VolumeNeeds
from karpool.model.labels import OS
from karpool.model.operating_systems import WINDOWS
from karpool.model.pod import Pod
from karpool.model.requirements import NO_REQUIREMENTS, Requirements
from karpool.model.scheduling import Affinity, PodAffinity, SpreadConstraint, Toleration
from karpool.model.workloads import Namespace


class Preferences(StrEnum):
    """The preference policy: preferences are required until they cannot be met, or ignored."""

    RESPECT = "respect"
    IGNORE = "ignore"


Port = tuple[str, int, str]
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - how a pod spells "every address"; nothing is bound here
TOLERATE_PREFER_NO_SCHEDULE: Final = Toleration(operator="Exists", effect="PreferNoSchedule")


@dataclass(frozen=True, slots=True)
class Level:
    """The rules of a pod at one step of relaxing its preferences."""

    requirements: Requirements
    strict: Requirements
    tolerations: tuple[Toleration, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """All rules of a pod: its levels, strictest first, and what holds on every level."""

    levels: tuple[Level, ...]
    inverse: tuple[Group, ...] = ()
    volumes: tuple[Requirements, ...] = ()
    ports: tuple[Port, ...] = ()
    attached: tuple[tuple[str, str], ...] = ()
    refusal: str = ""
    devices: bool = False
    """Whether the pods have claims on devices."""


def constraints(
    pod: Pod,
    *,
    namespaces: Mapping[str, Namespace],
    volumes: VolumeNeeds = NO_VOLUMES,
    preferences: Preferences = Preferences.RESPECT,
    soft_taints: bool = False,
    pinned: bool = False,
    devices: bool = False,
) -> Constraints:
    """Read a pod's rules.

    `soft_taints`: some pool asks pods to stay away; `pinned`: the pod never leaves its node; `devices`: somebody sees
    to it that claims on devices can be fulfilled.
    """
    if pinned:
        pod = msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, affinity=without_node_affinity(pod.spec.affinity))
        )
    reader = _Reader(pod, namespaces)
    refusal = _refusal(pod, volumes, devices=devices) or _unknown_namespace(pod, namespaces)
    nothing = Level(NO_REQUIREMENTS, NO_REQUIREMENTS, (), ())
    return Constraints(
        levels=(nothing,) if refusal else reader.ladder(preferences, soft_taints=soft_taints),
        inverse=tuple(dict.fromkeys(reader.anti(GroupKind.INVERSE))),
        volumes=volumes.alternatives,
        ports=host_ports(pod),
        attached=volumes.attached,
        refusal=refusal,
        devices=uses_devices(pod),
    )


def without_node_affinity(affinity: Affinity | None) -> Affinity | None:
    """The part of an affinity that is about other pods."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    return msgspec.structs.replace(affinity, node_affinity=None)


def _refusal(pod: Pod, volumes: VolumeNeeds, *, devices: bool) -> str:
    if uses_devices(pod):
        if not devices:
            return "uses dynamic resource claims, which are not looked at (--ignore-dra-requests)"
        if not pod.spec.resource_claims:
            return "has a container with a resource claim that the pod does not have"
    if volumes.problem:
        return volumes.problem
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    unknown = next((field.key for term in terms for field in term.match_fields if field.key != "metadata.name"), None)
    return f"selects nodes by the field {unknown}; only metadata.name can be selected by" if unknown else ""


def uses_devices(pod: Pod) -> bool:
    """Whether a pod has claims on devices."""
    spec = pod.spec
    return bool(spec.resource_claims or [c for c in spec.containers + spec.init_containers if c.resources.claims])


def _unknown_namespace(pod: Pod, namespaces: Mapping[str, Namespace]) -> str:
    lost = next((entry for entry in namespaces.values() if entry.unreadable), None)
    if lost is None or not selects_namespaces(pod):
        return ""
    return f"selects namespaces by label, and Namespace {lost.name} cannot be read: {lost.unreadable}"


def selects_namespaces(pod: Pod) -> bool:
    """Whether a rule of a pod depends on the labels of namespaces."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    terms = [(*side.required, *(weighted.pod_affinity_term for weighted in side.preferred)) for side in sides]
    return any(term.namespace_selector is not None for side in terms for term in side)


def host_ports(pod: Pod) -> tuple[Port, ...]:
    """The ports of the host that the pod's containers take, sidecars among them, as long as the pod runs."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        sorted(
            {
                (port.host_ip or ANY_ADDRESS, port.host_port, port.protocol)
                for container in (*pod.spec.containers, *sidecars)
                for port in container.ports
                if port.host_port
            }
        )
    )


@dataclass(frozen=True, slots=True)
class _SoftConstraints:
    """What is left of a pod's preferences and alternatives while they are relaxed one by one."""

    terms: tuple[Requirements, ...]
    near: tuple[Group, ...]
    far: tuple[Group, ...]
    nodes: tuple[Requirements, ...]
    spread: tuple[Group, ...]
    tolerant: bool


_ON_WINDOWS: Final = Requirements.of_labels({OS: WINDOWS})


class _Reader:
    """Reads the rules of a pod; preferences come heaviest first."""

    def __init__(self, pod: Pod, namespaces: Mapping[str, Namespace]) -> None:
        self.pod = pod
        self.namespaces = namespaces
        self.affinity = pod.spec.affinity
        self.selector = Requirements.of_labels(pod.spec.node_selector)
        # kube-scheduler looks at it for nothing, domains included, but no kubelet of another system runs the pod.
        on_windows = pod.spec.os is not None and pod.spec.os.name == WINDOWS
        self.runs_on = self.selector.intersect(_ON_WINDOWS) if on_windows else self.selector
        node = self.affinity.node_affinity if self.affinity else None
        required = node.required.node_selector_terms if node and node.required else ()
        self.terms = tuple(term.requirements for term in required)
        preferred = sorted(node.preferred, key=lambda term: -term.weight) if node else []
        self.preferences = tuple(term.preference.requirements for term in preferred)

    def ladder(self, preferences: Preferences, *, soft_taints: bool) -> tuple[Level, ...]:
        respect = preferences is Preferences.RESPECT
        spread = [c for c in self.pod.spec.topology_spread_constraints if c.when_unsatisfiable == "ScheduleAnyway"]
        soft = _SoftConstraints(
            terms=self.terms,
            near=self._preferred(GroupKind.AFFINITY) if respect else (),
            far=self._preferred(GroupKind.ANTI) if respect else (),
            nodes=self.preferences if respect else (),
            spread=tuple(self._spread(c) for c in spread) if respect else (),
            tolerant=False,
        )
        steps = [soft]
        while (soft := _relax(soft, soft_taints=soft_taints)) != steps[-1]:
            steps.append(soft)
        # Relaxing alternatives first can leave a pod with a term that no node meets although another term would do.
        steps += [_SoftConstraints((term,), (), (), (), (), soft_taints) for term in self.terms[:-1]]
        return tuple(dict.fromkeys(self._level(step) for step in steps))

    def _level(self, soft: _SoftConstraints) -> Level:
        strict = self.runs_on.intersect(soft.terms[0]) if soft.terms else self.runs_on
        full = strict.intersect(soft.nodes[0]) if soft.nodes else strict
        groups = (*self._hard_groups(), *soft.near, *soft.far, *soft.spread)
        tolerations = self.pod.spec.tolerations
        return Level(
            requirements=full,
            strict=strict,
            tolerations=(*tolerations, TOLERATE_PREFER_NO_SCHEDULE) if soft.tolerant else tolerations,
            groups=tuple(dict.fromkeys(groups)),
        )

    def _hard_groups(self) -> list[Group]:
        hard = [c for c in self.pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
        near = self._terms(self.affinity.pod_affinity if self.affinity else None, GroupKind.AFFINITY)
        return [*(self._spread(c) for c in hard), *together(near), *self.anti(GroupKind.ANTI)]

    def anti(self, kind: GroupKind) -> list[Group]:
        return self._terms(self.affinity.pod_anti_affinity if self.affinity else None, kind)

    def _terms(self, affinity: PodAffinity | None, kind: GroupKind) -> list[Group]:
        meta = self.pod.metadata
        required = affinity.required if affinity else ()
        return [affinity_group(kind, term, meta.namespace, meta.labels, self.namespaces) for term in required]

    def _preferred(self, kind: GroupKind) -> tuple[Group, ...]:
        if self.affinity is None:
            return ()
        affinity = self.affinity.pod_affinity if kind is GroupKind.AFFINITY else self.affinity.pod_anti_affinity
        meta = self.pod.metadata
        heaviest = sorted(affinity.preferred, key=lambda term: -term.weight) if affinity else []
        return tuple(
            affinity_group(kind, weighted.pod_affinity_term, meta.namespace, meta.labels, self.namespaces)
            for weighted in heaviest
        )

    def _spread(self, constraint: SpreadConstraint) -> Group:
        meta = self.pod.metadata
        honor = constraint.node_affinity_policy == "Honor"
        alternatives = tuple(self.selector.intersect(term) for term in self.terms) or (self.selector,)
        nodes = NodeFilter(
            alternatives=alternatives if honor and (self.selector or self.terms) else (),
            tolerations=self.pod.spec.tolerations if constraint.node_taints_policy == "Honor" else None,
        )
        return spread_group(constraint, meta.namespace, meta.labels, nodes)


def _relax(soft: _SoftConstraints, *, soft_taints: bool) -> _SoftConstraints:
    if len(soft.terms) > 1:
        return replace(soft, terms=soft.terms[1:])
    if soft.near:
        return replace(soft, near=soft.near[1:])
    if soft.far:
        return replace(soft, far=soft.far[1:])
    if soft.nodes:
        return replace(soft, nodes=soft.nodes[1:])
    if soft.spread:
        return replace(soft, spread=soft.spread[1:])
    return replace(soft, tolerant=soft.tolerant or soft_taints)
