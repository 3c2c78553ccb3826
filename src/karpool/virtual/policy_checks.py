"""Validation of the changes that policies make to pools, including those of an initial cluster."""

from collections.abc import Iterator

import msgspec

from karpool.model.nodepool import NodePool
from karpool.model.rules.pools import controller_flaws, weight_flaws
from karpool.virtual.scenario import ALL_POOLS, Policy, Scenario, patched, patches_of
from karpool.wire.fields import explain, written_path
from karpool.wire.merge_patch import merged
from karpool.wire.problems import Flaw


def pool_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Changes of pools that do not exist, or that make a pool invalid."""
    known = {pool.name for pool in scenario.pools}
    for name, policy in scenario.policies.items():
        at = ("policies", name, "pools")
        for pool in policy.pools:
            if pool not in known | {ALL_POOLS}:
                message = f"there is no pool {pool}; there are {', '.join(sorted(known)) or 'none'}"
                yield Flaw(written_path((*at, pool)), "UnknownPool", message)
        for changed in scenario.pools:
            yield from _change_flaws(changed, policy, at)


def _change_flaws(pool: NodePool, policy: Policy, at: tuple[str, ...]) -> Iterator[Flaw]:
    """Flaws that the changes cause, under the key of the first change that causes them."""
    before = set(_flaws(pool, Policy()))
    so_far: dict[str, dict[str, object]] = {}
    for name in patches_of(pool, policy):
        so_far[name] = policy.pools[name]
        added = [flaw for flaw in _flaws(pool, Policy(pools=so_far)) if flaw not in before]
        for flaw in added:
            yield flaw._replace(field=f"{written_path((*at, name))}.{flaw.field}")
        before.update(added)


def _flaws(pool: NodePool, policy: Policy) -> Iterator[Flaw]:
    try:
        (changed,) = patched((pool,), policy)
    except msgspec.ValidationError as error:
        written: object = {}
        for name in patches_of(pool, policy):
            written = merged(written, policy.pools[name])
        yield explain(error, NodePool, written)
    else:
        yield from (*weight_flaws(changed.spec.weight), *controller_flaws(changed))
