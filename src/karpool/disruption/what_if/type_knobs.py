"""Knobs for the instance types that NodePools allow.

They change the requirements of pools, as somebody would who applies them. So nodes of a type that is forbidden have
drifted, and are replaced.
"""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.disruption.what_if.pool_knobs import PoolKnob
from karpool.disruption.what_if.question import KnobError, Question, unknown_object
from karpool.model.labels import INSTANCE_TYPE, machine_prefix
from karpool.model.nodepool import NodePool, PoolRequirement
from karpool.model.requirements import requirement

MOST_TYPES: Final = 100
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Patterns = Annotated[tuple[Pattern, ...], msgspec.Meta(max_length=MOST_TYPES)]
"""Names of types, such as `m6i.large`, or patterns such as `t3.*`."""


class TypesKnob(PoolKnob, kw_only=True):
    instance_types: Patterns

    @property
    def listed(self) -> str:
        """The types, for people."""
        return ", ".join(self.instance_types)


class ForbidTypes(TypesKnob, kw_only=True, tag="forbidTypes"):
    def turn(self, question: Question) -> Question:
        names = tuple(sorted(entry.name for entry in _matching(question.catalog, self.instance_types)))
        forbidden = PoolRequirement(key=INSTANCE_TYPE, operator="NotIn", values=names)
        return question.with_pools(
            self.node_pool, lambda pool: _requiring(pool, (*pool.spec.template.spec.requirements, forbidden))
        )

    @property
    def words(self) -> str:
        return f"forbid {self.listed} in {self.where}"


class OnlyTypes(TypesKnob, kw_only=True, tag="onlyTypes"):
    """The pool allows no other types than these, of those that it allows now."""

    def turn(self, question: Question) -> Question:
        names = tuple(sorted(entry.name for entry in _matching(question.catalog, self.instance_types)))
        only = PoolRequirement(key=INSTANCE_TYPE, operator="In", values=names)
        return question.with_pools(
            self.node_pool, lambda pool: _requiring(pool, (*pool.spec.template.spec.requirements, only))
        )

    @property
    def words(self) -> str:
        return f"allow only {self.listed} in {self.where}"


class AddTypes(TypesKnob, kw_only=True, tag="addTypes"):
    """The pool allows these types, too: lists in its requirements become longer, and may let in others like them."""

    def turn(self, question: Question) -> Question:
        added = _matching(question.catalog, self.instance_types)
        return question.with_pools(self.node_pool, lambda pool: _admitting(pool, added))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"allow {self.listed} in {self.where}"


class AnyMachine(PoolKnob, kw_only=True, tag="anyMachine"):
    """The pool allows every machine of its architecture, system, zones and capacity types."""

    def turn(self, question: Question) -> Question:
        return question.with_pools(self.node_pool, _any_machine)

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"allow all instance types in {self.where}"


def _any_machine(pool: NodePool) -> NodePool:
    return _requiring(pool, [rule for rule in pool.spec.template.spec.requirements if not of_machine(rule)])


def of_machine(rule: PoolRequirement) -> bool:
    """Whether a requirement is about which machine it is."""
    return rule.key == INSTANCE_TYPE or bool(machine_prefix(rule.key))


def _requiring(pool: NodePool, rules: Iterable[PoolRequirement]) -> NodePool:
    template = pool.spec.template
    spec = replace(template.spec, requirements=tuple(rules))
    return replace(pool, spec=replace(pool.spec, template=replace(template, spec=spec)))


def _matching(catalog: Catalog, patterns: Iterable[str]) -> list[InstanceType]:
    known = [entry for entry in catalog.types if not entry.observed]
    found: dict[str, InstanceType] = {}
    for pattern in patterns:
        matching = [entry for entry in known if fnmatchcase(entry.name, pattern)]
        if not matching:
            raise unknown_object("instanceTypes", "instance type", pattern, [entry.name for entry in known])
        found.update((entry.name, entry) for entry in matching)
    return list(found.values())


def _admitting(pool: NodePool, types: Collection[InstanceType]) -> NodePool:
    return _requiring(pool, (_wider(pool, rule, types) for rule in pool.spec.template.spec.requirements))


def _wider(pool: NodePool, rule: PoolRequirement, types: Collection[InstanceType]) -> PoolRequirement:
    """A requirement that these types meet, too; one with bounds cannot be made so."""
    allowed = requirement(rule.operator, rule.values, rule.min_values)
    values = {value for entry in types for value in _values(entry, rule.key) if not allowed.has(value)}
    if not values:
        return rule
    if rule.operator == "In":
        return replace(rule, values=(*rule.values, *sorted(values)))
    if rule.operator == "NotIn":
        return replace(rule, values=tuple(value for value in rule.values if value not in values))
    written = f"{rule.key} {rule.operator} {' '.join(rule.values)}".strip()
    raise KnobError("instanceTypes", f"NodePool {pool.name} requires {written}, which leaves no room for them")


def _values(entry: InstanceType, key: str) -> Collection[str]:
    """The values that a type can have of a label, if the source says so."""
    known = entry.requirements.get(key)
    if key == INSTANCE_TYPE:
        return (entry.name,)
    # A type that comes in several values, such as zones, is there in what the pool already allows.
    return known.values if known is not None and not known.complement and len(known.values) == 1 else ()
