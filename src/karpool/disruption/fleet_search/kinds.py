"""What can be bought, as kinds of new nodes: pool, type, capacity type and zone, and which pods each would take."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.pod_classes import Signature
from karpool.cluster.resources import UNLIMITED
from karpool.model.labels import CAPACITY_TYPE, HOSTNAME, RESERVED, SPOT, ZONE
from karpool.model.requirements import ANY, Requirements, one_of
from karpool.model.scheduling import untolerated
from karpool.optimization.problem import Kinds
from karpool.packing.engine import Engine
from karpool.packing.templates import NodeTemplate
from karpool.packing.type_table import Mask, TypeTable


class Market(NamedTuple):
    """One way to launch nodes of a pool: its capacity type and zone settled."""

    template: int
    capacity_type: str
    zone: str
    requirements: Requirements


@dataclass(frozen=True, slots=True)
class KindTable:
    """Kinds as a search sees them, and the market and the type behind each."""

    kinds: Kinds
    suits: Array
    """(signatures, kinds) uint8."""
    markets: tuple[Market, ...]
    market_of: Array


def kinds_of(engine: Engine, signatures: list[Signature], columns: Array) -> KindTable:
    """Every kind that could be launched and that no other one makes needless; `columns`: the resources that matter."""
    pools, types = engine.tables.pools, engine.tables.pools.types
    rows: list[tuple[int, int]] = []
    prices: list[float] = []
    suits: list[Array] = []
    markets = markets_of(engine, reserved=False)
    for number, market in enumerate(markets):
        offered = types.cheapest(market.requirements)
        usable = pools.usable_mask(market.template) & np.isfinite(offered)
        if not usable.any():
            continue
        fits = suitable(engine, market, signatures)
        room = pools.room[market.template][:, columns]
        for entry in _undominated(np.flatnonzero(usable), offered, room, fits):
            rows.append((number, entry))
            prices.append(float(offered[entry]))
            suits.append(fits[:, entry])
    table = table_of(engine, markets, rows, np.array(prices), columns)
    matrix = np.stack(suits, axis=1) if suits else np.zeros((len(signatures), 0), dtype=np.uint8)
    market_of = np.array([number for number, _ in rows], dtype=np.int32)
    return KindTable(table, np.ascontiguousarray(matrix, dtype=np.uint8), tuple(markets), market_of)


def markets_of(engine: Engine, *, reserved: bool) -> list[Market]:
    """The ways to launch nodes, pool by pool: on demand and as spot, or from reservations.

    A search leaves reservations out, as only the engine can count them.
    """
    types = engine.tables.pools.types
    markets = []
    for number, template in enumerate(engine.tables.pools.templates):
        launchable = types.launchable(template.requirements)
        offers = {(types.offerings[at].capacity_type, types.offerings[at].zone) for at in np.flatnonzero(launchable)}
        for capacity_type, zone in sorted(offers):
            if (capacity_type == RESERVED) is not reserved:
                continue
            requirements = _settled(template, capacity_type, zone)
            if requirements.satisfiable:
                markets.append(Market(number, capacity_type, zone, requirements))
    return markets


def _settled(template: NodeTemplate, capacity_type: str, zone: str) -> Requirements:
    settled = template.requirements
    for key, value in ((CAPACITY_TYPE, capacity_type), (ZONE, zone)):
        if value:
            settled = settled.intersect(Requirements([(key, one_of(value))]))
    return settled


def suitable(engine: Engine, market: Market, signatures: list[Signature]) -> Array:
    """Which types of a market would take pods of which signature."""
    types, template = engine.tables.pools.types, engine.tables.pools.templates[market.template]
    suits = np.zeros((len(signatures), len(types.types)), dtype=np.uint8)
    for number, signature in enumerate(signatures):
        if untolerated(template.taints, signature.tolerations) is not None:
            continue
        host = signature.requirements.get(HOSTNAME, ANY)
        if not host.complement or host.bounded:
            continue
        suits[number] = _types_for(engine, types, market, signature)
    return suits


def _types_for(engine: Engine, types: TypeTable, market: Market, signature: Signature) -> Mask:
    free, wanted = engine.catalog.well_known, signature.requirements.without(HOSTNAME)
    mask: Mask = np.zeros(len(types.types), dtype=np.bool_)
    if market.requirements.conflict(wanted, undefined=free) is not None:
        return mask
    both = market.requirements.intersect(wanted)
    for volume in signature.volumes or (Requirements(),):
        if both.conflict(volume, undefined=free) is None:
            mask |= types.suitable(both.intersect(volume))
    return mask


def _undominated(entries: Array, price: Array, room: Array, fits: Array) -> list[int]:
    """Types of one market without those for which another is no dearer, no smaller, and takes the same pods."""
    kept: list[int] = []
    rooms, suits = np.empty_like(room[entries]), np.empty_like(fits[:, entries])
    # Among equals the first by price and number stays, so the order decides who is compared with whom.
    for entry in sorted(entries.tolist(), key=lambda number: (price[number], -int(room[number].sum()), number)):
        others = len(kept)
        larger = (rooms[:others] >= room[entry]).all(axis=1)
        if not (larger & (suits[:, :others] >= fits[:, entry, None]).all(axis=0)).any():
            rooms[others], suits[:, others] = room[entry], fits[:, entry]
            kept.append(entry)
    return sorted(kept)


def table_of(
    engine: Engine, markets: list[Market], rows: list[tuple[int, int]], prices: Array, columns: Array
) -> Kinds:
    """Kinds as arrays: `rows` are pairs of a market and a type."""
    pools = engine.tables.pools
    weights = [template.pool.weight for template in pools.templates]
    heavier = sorted(set(weights), reverse=True)
    used = [markets[number] for number, _ in rows]
    entries = np.array([entry for _, entry in rows], dtype=np.int32)
    room = [pools.room[market.template, entry][columns] for market, (_, entry) in zip(used, rows, strict=True)]
    empty = np.zeros((0, len(columns)), dtype=np.int64)
    return Kinds(
        price=prices,
        worst=np.array([_worst(engine, market)[entry] for market, (_, entry) in zip(used, rows, strict=True)]),
        room=np.minimum(np.stack(room), UNLIMITED) if room else empty,
        domain=_domains(engine, used),
        pool=np.array([market.template for market in used], dtype=np.int32),
        capacity=pools.capacity[entries][:, columns] if rows else empty,
        spot=np.array([market.capacity_type == SPOT for market in used], dtype=np.bool_),
        machine=entries,
        most=np.full(len(rows), np.inf),
        rank=np.array([heavier.index(weights[market.template]) for market in used], dtype=np.int32),
    )


def _worst(engine: Engine, market: Market) -> Array:
    """The highest prices at which types of a market could be launched in any zone, as a claim does not choose one."""
    template = engine.tables.pools.templates[market.template]
    anywhere = template.requirements
    if market.capacity_type:
        anywhere = anywhere.intersect(Requirements([(CAPACITY_TYPE, one_of(market.capacity_type))]))
    return engine.worst_prices(anywhere)


def _domains(engine: Engine, markets: list[Market]) -> Array:
    """The domain of each kind by topology key, where its requirements leave only one."""
    domains = engine.snapshot.topology.domains
    table = np.full((len(markets), len(domains.values)), -1, dtype=np.int32)
    for (name, key), (row, market) in product(domains.keys.items(), enumerate(markets)):
        allowed = market.requirements.get(name)
        if name != HOSTNAME and allowed is not None and not allowed.complement and len(allowed.values) == 1:
            table[row, key] = domains.values[key].get(next(iter(allowed.values)), -1)
    return table
