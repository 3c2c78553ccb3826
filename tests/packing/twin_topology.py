"""Topology for the plain twin: how many pods each rule counts in each domain, and what that leaves for the next pod."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from tests.packing.twin_templates import Template, can_be_had

from karpool.catalog.instance_types import InstanceType
from karpool.cluster.codes import GroupKind
from karpool.cluster.constraints import Level
from karpool.cluster.groups import Group, hard
from karpool.cluster.nodes import StateNode
from karpool.model.pod import Pod
from karpool.model.requirements import ANY, Requirement, Requirements, one_of
from karpool.model.scheduling import Taint, untolerated

MARKS_ALL: Final = (GroupKind.ANTI, GroupKind.INVERSE)


class Topology:
    """Counts per group and domain; they only grow."""

    def __init__(
        self,
        groups: Iterable[Group],
        *,
        templates: Sequence[Template],
        nodes: Sequence[StateNode],
        well_known: frozenset[str],
    ) -> None:
        self.counts: dict[Group, Counter[str]] = {group: Counter() for group in groups}
        self.totals: Counter[Group] = Counter()
        self.well_known = well_known
        self.supplied = {
            group: _domains_of_pools(group, templates) | _domains_of_nodes(group, nodes) for group in self.counts
        }

    def known(self, group: Group) -> set[str]:
        """The domains a group has heard of: nodes are there, could be made there, or counted pods run there."""
        return self.supplied[group] | set(self.counts[group])

    def constraining(self, pod: Pod, level: Level) -> list[Group]:
        """The rules a pod has to keep: its own, and those of others that want to be far from it."""
        others = [group for group in self.counts if group.kind is GroupKind.INVERSE and _counted(group, pod)]
        return [*level.groups, *others]

    def allows_node(self, pod: Pod, level: Level, labels: Mapping[str, str]) -> bool:
        """Whether every rule lets a pod onto a node with these labels."""
        return all(
            group.key in labels and self._allows(group, pod, level, labels[group.key])
            for group in self.constraining(pod, level)
        )

    def choices(self, pod: Pod, level: Level, requirements: Requirements, host: str) -> Iterator[Requirements]:
        """What a new node could be narrowed to so that every rule lets the pod onto it, best choice first."""
        groups = self.constraining(pod, level)
        if not all(self._allows(group, pod, level, host) for group in groups if group.by_host):
            return
        keys = list(dict.fromkeys(group.key for group in groups if not group.by_host))
        ways = [self._ways([g for g in groups if g.key == key], pod, level, requirements) for key in keys]
        for chosen in product(*ways):
            yield Requirements((*requirements.items(), *zip(keys, chosen, strict=True)))

    def _ways(self, groups: Sequence[Group], pod: Pod, level: Level, requirements: Requirements) -> list[Requirement]:
        """What one key can be narrowed to: each of the allowed domains alone, or all of them at once."""
        allowed = set.intersection(
            *(
                {
                    domain
                    for domain in self._open_domains(group, requirements)
                    if self._allows(group, pod, level, domain)
                }
                for group in groups
            )
        )
        if not allowed:
            return []
        if not any(self._pins(group, pod) for group in groups):
            return [one_of(*allowed)]
        first = next((group for group in groups if group.kind is GroupKind.SPREAD), None)
        return [
            one_of(domain)
            for domain in sorted(allowed, key=lambda domain: (self.counts[first][domain] if first else 0, domain))
        ]

    def _pins(self, group: Group, pod: Pod) -> bool:
        """Whether a rule needs the one domain to be known."""
        return group.kind is GroupKind.SPREAD or (group.kind is GroupKind.AFFINITY and self._starts(group, pod))

    def _open_domains(self, group: Group, requirements: Requirements) -> set[str]:
        """The known domains in which a new node with these requirements could still come up."""
        wanted = requirements.get(group.key)
        if wanted is None:
            return self.known(group) if group.key in self.well_known else set()
        return {domain for domain in self.known(group) if wanted.has(domain)}

    def _allows(self, group: Group, pod: Pod, level: Level, domain: str) -> bool:
        """Whether a rule lets a pod into a domain."""
        count = self.counts[group][domain]
        if group.kind is GroupKind.SPREAD:
            return (group.by_host or domain in self.known(group)) and (
                count + _counted(group, pod) - self._lowest(group) <= group.max_skew
            )
        if group.kind is GroupKind.AFFINITY:
            return _own_domains(group, level).has(domain) and (count > 0 or self._starts(group, pod))
        return count == 0

    def _lowest(self, group: Group) -> int:
        """The count of the emptiest domain that the rule looks at; a new host is always empty."""
        if group.by_host:
            return 0
        usable = [domain for domain in self.known(group) if _admits(group, domain)]
        if len(usable) < group.min_domains:
            return 0
        return min((self.counts[group][domain] for domain in usable), default=0)

    def _starts(self, group: Group, pod: Pod) -> bool:
        """Whether the pod is the first of those that want to be together; one whose domain is open is before it."""
        return _counted(group, pod) and not self.totals[group]

    def record_on_node(
        self, pod: Pod, owned: Iterable[Group], labels: Mapping[str, str], taints: tuple[Taint, ...]
    ) -> None:
        """Count a pod that runs on a node; `owned`: the inverse groups it declares."""
        rules = [g for g in self._counting(pod) if g.nodes.accepts(labels, taints)]
        self.totals.update(group for group in rules if group.key in labels)
        for group in (*rules, *owned):
            if group.key in labels:
                self.counts[group][labels[group.key]] += 1

    def record_on_claim(
        self, pod: Pod, owned: Iterable[Group], *, requirements: Requirements, taints: tuple[Taint, ...], host: str
    ) -> None:
        """Count a pod that will run on a new node; `owned`: the inverse groups it declares."""
        rules = [g for g in self._counting(pod) if self._looks_at(g, requirements, taints)]
        self.totals.update(rules)
        for group in (*rules, *owned):
            for domain in self._marked(group, requirements, host):
                self.counts[group][domain] += 1

    def _counting(self, pod: Pod) -> list[Group]:
        return [group for group in self.counts if group.kind is not GroupKind.INVERSE and _counted(group, pod)]

    def _looks_at(self, group: Group, requirements: Requirements, taints: tuple[Taint, ...]) -> bool:
        """Whether a group counts pods on a new node with these requirements and taints."""
        filtered = group.nodes
        if filtered.tolerations is not None and untolerated(hard(taints), filtered.tolerations) is not None:
            return False
        return not filtered.alternatives or any(
            requirements.conflict(wanted, undefined=self.well_known) is None for wanted in filtered.alternatives
        )

    def _marked(self, group: Group, requirements: Requirements, host: str) -> set[str]:
        """The domains in which a pod on a new node counts: the only possible one, or, to stay away, all of them."""
        if group.by_host:
            return {host}
        wanted = requirements.get(group.key)
        values = set(wanted.values) if wanted is not None and not wanted.complement else None
        if group.kind in MARKS_ALL:
            return self._open_domains(group, requirements) if values is None else values
        return values if values is not None and len(values) == 1 else set()


def _counted(group: Group, pod: Pod) -> bool:
    return group.counts(pod.metadata.namespace, pod.metadata.labels)


def _own_domains(group: Group, level: Level) -> Requirement:
    """The domains that the pod itself insists on; of hosts it may use any."""
    return ANY if group.by_host else level.strict.get(group.key, ANY)


def _admits(group: Group, domain: str) -> bool:
    """Whether a spread rule looks at a domain: nodes that its pods may use can be there."""
    wanted = group.nodes.alternatives
    return not wanted or any(entry.get(group.key, ANY).has(domain) for entry in wanted)


def _domains_of_pools(group: Group, templates: Sequence[Template]) -> set[str]:
    """The domains in which pools could make nodes: what offerings say, else their types, else the pool itself."""
    domains: set[str] = set()
    for template in templates:
        tolerations = group.nodes.tolerations
        if tolerations is not None and untolerated(hard(template.taints), tolerations) is not None:
            continue
        allowed = template.requirements.get(group.key, ANY)
        requirements = [held for entry in template.types for held in _requirements_of(entry, template, group.key)]
        if not requirements and template.types and not allowed.complement:
            domains |= allowed.values
        for held in requirements:
            if not held.complement:
                domains |= {value for value in held.values if allowed.has(value)}
    return domains


def _requirements_of(entry: InstanceType, template: Template, key: str) -> Iterator[Requirement]:
    """The requirements on a key of the offerings that can be had now, or of the type where they have none."""
    for offering in entry.offerings:
        if can_be_had(offering, template.requirements, template.catalog):
            held = offering.requirements.get(key, entry.requirements.get(key))
            if held is not None:
                yield held


def _domains_of_nodes(group: Group, nodes: Sequence[StateNode]) -> set[str]:
    """The domains of nodes that are there, those of claims still without a node left out."""
    return {
        state.labels[group.key]
        for state in nodes
        if state.node is not None and group.key in state.labels and group.nodes.accepts(state.labels, state.taints)
    }
