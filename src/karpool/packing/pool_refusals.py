"""Why no pool creates a node for a pod.

The checks of a pool go from what holds for all its nodes to what depends on the rest of the run; the first that leaves
no type is the reason. Limits are the reason only where a type would do without them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from karpool.cluster.resources import ATTACH, PODS, UNLIMITED
from karpool.model.labels import HOSTNAME
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.operating_systems import NOT_FOR_WINDOWS, needs_windows
from karpool.model.reading.unreadable import UNKNOWN
from karpool.model.requirements import Requirement, Requirements, one_of
from karpool.model.scheduling import untolerated
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.refusals import prepare_rule_alone
from karpool.packing.options import MinValues
from karpool.packing.placement import Placement
from karpool.packing.refusal_messages import (
    Refusal,
    RefusalRule,
    amount,
    broken,
    listing,
    of_group,
    rule_name,
    with_unit,
)
from karpool.packing.templates import supplies, title_of
from karpool.packing.type_table import Mask

if TYPE_CHECKING:
    from karpool.packing.engine import Engine

UNKNOWN_LABEL: Final = "the catalogue does not know this label"
_MOST_CHOICES: Final = 256


@dataclass(frozen=True, slots=True)
class RuleView:
    """What a topology rule allows a new node by itself: its domains, or for hosts whether an empty one will do."""

    group: int
    key: str
    allowed: frozenset[str]
    empty_host: bool
    pins: bool


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """What refuses a pod in a pool: how many checks it passed, how many types were left then, and the rule."""

    depth: int
    count: int
    rule: RefusalRule
    detail: str


def pool_refusals(engine: "Engine", levels: list[int], labels: int) -> list[Refusal]:
    """Why no pool creates a node for a pod, in the order in which pools are tried."""
    templates = engine.tables.pools.templates
    views = {number: _views(engine, number, labels) for number in levels}
    strict = bool(engine.memory["state"][c.STRICT_RESERVED])
    refused = []
    for pool, template in enumerate(templates):
        if isinstance(template.pool, NodeGroup) and template.pool.fixed:
            refused.append(Refusal(0, template.title, RefusalRule.LIMIT, template.pool.fixed))
            continue
        limits = engine.memory["limits"][pool]
        refusals: list[PoolRefusal] = []
        for number in levels:
            key = (number, pool, limits.tobytes(), views[number], strict)
            if key not in engine.explained:
                engine.explained[key] = _Check(engine, pool, number, views[number], limits).refusal()
            refusals.append(engine.explained[key])
        best = max(refusals, key=lambda refusal: refusal.depth)
        refused.append(Refusal(best.count, template.title, best.rule, best.detail))
    return refused + _idle_pools(engine)


def group_refusals(engine: "Engine", levels: list[int], labels: int) -> list[tuple[NodeGroup, RefusalRule | None]]:
    """What keeps a pod off a new node of each group, were there no limit to its size; None: nothing does."""
    views = {number: _views(engine, number, labels) for number in levels}
    refused: list[tuple[NodeGroup, RefusalRule | None]] = []
    for at, template in enumerate(engine.tables.pools.templates):
        if not isinstance(template.pool, NodeGroup):
            continue
        limits = np.full_like(engine.memory["limits"][at], UNLIMITED)
        rules = {number: _Check(engine, at, number, views[number], limits).refusal() for number in levels}
        best = max(rules.values(), key=lambda refusal: refusal.depth)
        refused.append((template.pool, None if best.rule is RefusalRule.REFUSED else best.rule))
    return refused


def _idle_pools(engine: "Engine") -> list[Refusal]:
    """Pools that create no nodes at all, whatever the pod."""
    pools = engine.snapshot.objects.node_pools
    if not pools:
        return [Refusal(0, "new nodes", RefusalRule.NO_TYPE, "there is no NodePool to create one")]
    refused = []
    for pool in pools:
        rule, why = _why_idle(engine, pool)
        if why:
            refused.append(Refusal(0, title_of(pool), rule, why))
    return refused


def _why_idle(engine: "Engine", pool: NodePool) -> tuple[RefusalRule, str]:
    if pool.unreadable:
        return RefusalRule.UNREADABLE, f"cannot be read: {pool.unreadable}"
    if not engine.snapshot.withheld_pools.isdisjoint((pool.name, UNKNOWN)):
        return RefusalRule.UNREADABLE, "has a Node or a NodeClaim that cannot be read"
    if pool.static:
        return RefusalRule.CLOSED, "keeps a fixed number of nodes"
    if not pool.ready:
        return RefusalRule.CLOSED, "is not ready"
    return RefusalRule.CLOSED, "" if supplies(pool, engine.options.supply_annotation) else "is left alone by Karpool"


def cut_claim(engine: "Engine", pod_row: int) -> Refusal | None:
    """Why a pod's new node may not be created: the types that may be listed break minValues."""
    memory = engine.memory
    queued = memory["pods"][: int(memory["state"][c.QUEUED])]
    places = memory["target"][: len(queued)][queued == pod_row]
    if not len(places) or places[0] > c.UNPLACED - 1:
        return None
    placement, claim = Placement(engine, []), -2 - int(places[0])
    if len(placement.ordered_types(claim, placement.claim_requirements(claim))):
        return None
    count = int(memory["claim_type_count"][claim])
    detail = "the cheapest types that may be listed are too few for its minValues"
    return Refusal(count, f"pool {placement.claim_pool(claim)}", RefusalRule.MIN_VALUES, detail)


def _views(engine: "Engine", class_: int, labels: int) -> tuple[RuleView, ...]:
    memory, topology = engine.memory, engine.snapshot.topology
    state = memory["state"]
    views: list[RuleView] = []
    while (group := int(prepare_rule_alone(memory.table, class_, labels, len(views)))) != c.UNSET:
        rule = topology.groups[group]
        if rule.by_host:
            caps, needs = memory["cap_most"][: state[c.CAPS]], memory["need_boot"][: state[c.NEEDS]]
            empty_host = bool((caps >= 0).all() and needs.all())
            views.append(RuleView(group, rule.key, frozenset(), empty_host, pins=False))
        else:
            known = topology.domains.values[int(memory["keys"][0])]
            allowed = frozenset(value for value, domain in known.items() if memory["allow_claim"][0, domain])
            views.append(RuleView(group, rule.key, allowed, empty_host=True, pins=bool(memory["pinned"][0])))
    return tuple(views)


class _Check:
    def __init__(
        self, engine: "Engine", pool: int, class_: int, views: tuple[RuleView, ...], limits: npt.NDArray[np.int64]
    ) -> None:
        self.engine, self.pool, self.class_, self.views, self.limits = engine, pool, class_, views, limits
        self.pools = engine.tables.pools
        self.template = self.pools.templates[pool]
        self.types = self.pools.types
        self.usable = self.pools.usable_mask(pool)
        self.room = self.pools.room[pool]
        self.names = engine.snapshot.resources.names[: self.room.shape[1]]
        classes = engine.snapshot.classes
        self.requests = classes.requests[class_, : len(self.names)].copy()
        for shared in classes.shared_columns.row(class_):
            self.requests[shared] += 1
        self.signature = classes.signatures[int(classes.signature[class_])]
        self.free_keys = engine.tables.free_keys

    def refusal(self) -> PoolRefusal:
        """What refuses the pod; if no check does, the pod has to wait."""
        checks = (
            self._taint,
            self._system,
            self._unusable,
            self._label,
            self._volume,
            self._no_type,
            self._port,
            self._not_enough,
            self._limit,
            self._topology,
            self._min_values,
        )
        for depth, check in enumerate(checks):
            refused = check()
            if refused is not None:
                left, rule, detail = refused
                return PoolRefusal(depth, int(left.sum()), rule, detail)
        count = int(self._fitting.sum())
        if self.engine.memory["state"][c.STRICT_RESERVED]:
            return PoolRefusal(
                len(checks), count, RefusalRule.RESERVED, "waits for reserved capacity that other pods took"
            )
        return PoolRefusal(
            len(checks), count, RefusalRule.REFUSED, "no choice of types and domains serves all its rules"
        )

    def _taint(self) -> tuple[Mask, RefusalRule, str] | None:
        taint = untolerated(self.template.taints, self.signature.tolerations)
        return None if taint is None else (self.usable, RefusalRule.TAINT, f"taint {taint}")

    def _system(self) -> tuple[Mask, RefusalRule, str] | None:
        if not needs_windows(self.template.requirements) or needs_windows(self.signature.requirements):
            return None
        return self.usable, RefusalRule.SYSTEM, NOT_FOR_WINDOWS

    def _unusable(self) -> tuple[Mask, RefusalRule, str] | None:
        suitable = self.pools.suitable[self.pool]
        if self.usable.any():
            return None
        if not suitable.any():
            unknown = self.types.unknown(self.template.requirements)
            if unknown is not None:
                wanted = self.template.requirements[unknown]
                return suitable, RefusalRule.UNKNOWN_LABEL, f"no known type meets {unknown} {wanted}: {UNKNOWN_LABEL}"
            return suitable, RefusalRule.NO_TYPE, "no available type meets the pool's own requirements"
        if not (self.room[suitable] >= 0).all(axis=1).any():
            return suitable, RefusalRule.NOT_ENOUGH, "no type has room for its daemons"
        return suitable, RefusalRule.MIN_VALUES, "the available types are too few for its minValues"

    def _label(self) -> tuple[Mask, RefusalRule, str] | None:
        wanted, own = self.signature.requirements, self.template.requirements
        host = wanted.get(HOSTNAME)
        if host is not None and not (host.complement and not host.bounded):
            return self.usable, RefusalRule.LABEL, f"requires {HOSTNAME} {host}, which no new node has"
        key = self._conflict(own, wanted.without(HOSTNAME))
        if key is None:
            return None
        has = f"has {own[key]}" if key in own else "does not set it"
        return self.usable, RefusalRule.LABEL, f"requires {key} {wanted[key]}, the pool {has}"

    def _conflict(self, own: Requirements, wanted: Requirements) -> str | None:
        """The first key on which two requirements conflict."""
        both = own.intersect(wanted)
        unsatisfiable = next((key for key, allowed in both.items() if not allowed.satisfiable), None)
        return own.conflict(wanted, undefined=self.free_keys) or unsatisfiable

    @cached_property
    def _base(self) -> Requirements:
        return self.template.requirements.intersect(self.signature.requirements.without(HOSTNAME))

    @cached_property
    def _alternatives(self) -> list[Requirements]:
        """What a new node could be like under the pod's requirements, for each place where its volumes are."""
        if not self.signature.volumes:
            return [self._base]
        reachable = (reach for reach in self.signature.volumes if self._conflict(self._base, reach) is None)
        return [self._base.intersect(reach) for reach in reachable]

    def _volume(self) -> tuple[Mask, RefusalRule, str] | None:
        if self._alternatives:
            return None
        clashes = dict.fromkeys(
            f"{key} {reach[key]}" for reach in self.signature.volumes if (key := self._conflict(self._base, reach))
        )
        return self.usable, RefusalRule.VOLUME, f"its volumes require {listing(clashes, 'or')}"

    @cached_property
    def _suited(self) -> Mask:
        mask = np.zeros_like(self.usable)
        for requirements in self._alternatives:
            mask |= self.types.suitable(requirements)
        return self.usable & mask

    def _no_type(self) -> tuple[Mask, RefusalRule, str] | None:
        if self._suited.any():
            return None
        for key, allowed in self.signature.requirements.without(HOSTNAME).items():
            alone = self.template.requirements.with_key(key, allowed)
            if not (self.usable & self.types.suitable(alone)).any():
                return self.usable, RefusalRule.NO_TYPE, f"no available type has {key} {allowed}"
        return self.usable, RefusalRule.NO_TYPE, "no available type meets all that it requires"

    @cached_property
    def _unclashed(self) -> Mask:
        number = int(self.engine.snapshot.classes.ports_id[self.class_])
        clash = self.engine.tables.clash[number, self.pool, : len(self.usable)]
        free: Mask = clash == 0
        return self._suited & free

    def _port(self) -> tuple[Mask, RefusalRule, str] | None:
        if self._unclashed.any():
            return None
        return self._suited, RefusalRule.PORT, "its daemons take the host port on every type"

    @cached_property
    def _fitting(self) -> Mask:
        enough: Mask = (self.room >= self.requests).all(axis=1)
        return self._unclashed & enough

    def _not_enough(self) -> tuple[Mask, RefusalRule, str] | None:
        if self._fitting.any():
            return None
        left = self._unclashed
        room = self.room[left]
        most = room.max(axis=0)
        after = " left after its daemons" if self.pools.runs[self.pool][:, left].any() else ""
        for column in np.flatnonzero(self.requests > most):
            if column == PODS:
                return left, RefusalRule.NOT_ENOUGH, f"no type has room for another pod{after}"
            name, requested = self.names[column], int(self.requests[column])
            if name.startswith(ATTACH):
                detail = (
                    f"no type attaches {requested} {name.removeprefix(ATTACH)} volumes ({int(most[column])} at most)"
                )
                return left, RefusalRule.ATTACH_LIMIT, detail
            best = amount(name, max(0, int(most[column])))
            return left, RefusalRule.NOT_ENOUGH, f"no type has {with_unit(name, requested)}{after} ({best} at most)"
        requests = [
            with_unit(name, int(requested))
            for name, requested in zip(self.names, self.requests, strict=True)
            if requested and name != "pods" and not name.startswith(ATTACH)
        ]
        return left, RefusalRule.NOT_ENOUGH, f"no type has {listing(requests)}{after}"

    @cached_property
    def _allowed(self) -> Mask:
        width = len(self.names)
        if not self.pools.limited[self.pool]:
            return self._fitting
        return self._fitting & (self.pools.capacity[:, :width] <= self.limits[:width]).all(axis=1)

    def _limit(self) -> tuple[Mask, RefusalRule, str] | None:
        limits = self.template.pool.spec.limits
        if self.limits[-1] < 1 and isinstance(self.template.pool, NodeGroup):
            return self._fitting, RefusalRule.LIMIT, f"has its maximum of {limits['nodes']} nodes"
        if self.limits[-1] < 1:
            return self._fitting, RefusalRule.LIMIT, f"limit nodes {limits['nodes']} reached"
        if self._allowed.any():
            return None
        least = self.pools.capacity[self._fitting].min(axis=0)
        for name in limits:
            column = self.names.index(name) if name in self.names else None
            if column is not None and least[column] > self.limits[column]:
                left, need = amount(name, max(0, int(self.limits[column]))), amount(name, int(least[column]), up=True)
                detail = f"limit {name} {limits[name]} reached ({left} left, the smallest type that fits has {need})"
                return self._fitting, RefusalRule.LIMIT, detail
        listed = listing(f"{name} {limits[name]}" for name in limits)
        return self._fitting, RefusalRule.LIMIT, f"limits {listed} leave no type that fits"

    def _topology(self) -> tuple[Mask, RefusalRule, str] | None:
        groups = self.engine.snapshot.topology.groups
        if next(self._choices(self.views), None) is not None:
            return None
        for view in self.views:
            if next(self._choices((view,)), None) is None:
                return self._allowed, of_group(groups[view.group]), broken(groups[view.group])
        names = dict.fromkeys(rule_name(groups[view.group]) for view in self.views)
        rule = of_group(groups[self.views[0].group])
        return self._allowed, rule, f"{listing(names)} together leave no place"

    def _choices(self, views: tuple[RuleView, ...]) -> Iterator[tuple[Requirements, Mask]]:
        """Each choice of domains that the rules allow, with the types that remain for it."""
        if not all(view.empty_host for view in views):
            return
        zoned = [view for view in views if view.key != HOSTNAME]
        keys = list(dict.fromkeys(view.key for view in zoned))
        options = [_choices_of_key([view for view in zoned if view.key == key]) for key in keys]
        for base, chosen in islice(product(self._alternatives, product(*options)), _MOST_CHOICES):
            restricted = base.intersect(Requirements(zip(keys, chosen, strict=True)))
            if restricted.satisfiable and all(key in base or key in self.free_keys for key in keys):
                left = self._allowed & self.types.suitable(restricted)
                if left.any():
                    yield restricted, left

    def _min_values(self) -> tuple[Mask, RefusalRule, str] | None:
        if self.engine.options.min_values is not MinValues.STRICT:
            return None
        lacking = None
        for requirements, left in self._choices(self.views):
            lacking = self.pools.lacking(self.pool, np.flatnonzero(left).tolist(), requirements)
            if lacking is None:
                return None
        if lacking is None:
            return None
        key, reached, minimum = lacking
        detail = f"the types that fit have {reached} values of {key}, minValues is {minimum}"
        return self._allowed, RefusalRule.MIN_VALUES, detail


def _choices_of_key(views: list[RuleView]) -> list[Requirement]:
    """What a key can be restricted to: each allowed domain where one has to be chosen, else all of them at once."""
    allowed = frozenset.intersection(*(view.allowed for view in views))
    if not allowed:
        return []
    if any(view.pins for view in views):
        return [one_of(value) for value in sorted(allowed)]
    return [one_of(*allowed)]
