"""What is wrong with a scenario, found before it is run: the field, and a sentence for the person who wrote it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec

from karpool.model.manifests.fields import Path, explain, unknown_fields, written_path
from karpool.model.manifests.yaml_documents import YamlError, yaml_documents
from karpool.model.nodepool import NodePool
from karpool.model.problems import Flaw
from karpool.model.rules.pools import controller_flaws, weight_flaws
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import ALL_POOLS, Policy, Scenario, patched, read_scenario


def flaws(text: bytes) -> Iterator[Flaw]:
    """Everything that is wrong with the text of a scenario; what keeps it from being read comes alone."""
    try:
        scenario = read_scenario(text)
    except YamlError as error:
        yield Flaw("", "Unreadable", str(error))
    except msgspec.ValidationError as error:
        yield _unreadable(error, text)
    else:
        yield from _scenario_flaws(scenario)
        yield from _unknown_flaws(next(yaml_documents(text)))


def _unreadable(error: msgspec.ValidationError, text: bytes) -> Flaw:
    documents = list(yaml_documents(text))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        return Flaw("", "Unreadable", "expected one document, a map with pools, workloads and policies")
    return explain(error, Scenario, documents[0])


def _scenario_flaws(scenario: Scenario) -> Iterator[Flaw]:
    if not 0 < seconds(scenario.length) < float("inf"):
        yield Flaw("length", "Length", f"{scenario.length} is no length of time; write one such as 24h")
    if not scenario.pools and not scenario.node_groups and not scenario.cluster:
        yield Flaw("pools", "MissingField", "is missing; without pools or nodeGroups there are no nodes")
    yield from _twins("pools", (pool.name for pool in scenario.pools))
    yield from _twins("nodeGroups", (group.name for group in scenario.node_groups))
    yield from _twins("workloads", (f"{entry.namespace}/{entry.name}" for entry in scenario.workloads))
    yield from _pool_flaws(scenario.pools, ("pools",))
    for name, policy in scenario.policies.items():
        yield from _policy_flaws(scenario, name, policy)


def _unknown_flaws(written: Any) -> Iterator[Flaw]:
    """Fields of pools and patches that nobody knows; a misspelt one would change nothing, and look like a result."""
    for number, pool in enumerate(written.get("pools") or ()):
        yield from _unknown_of_pool(pool, ("pools", number))
    for name, policy in (written.get("policies") or {}).items():
        for pool, patch in ((policy or {}).get("pools") or {}).items():
            yield from _unknown_of_pool(patch, ("policies", name, "pools", pool))


def _unknown_of_pool(written: Any, at: Path) -> Iterator[Flaw]:
    for path, known in unknown_fields(NodePool, written):
        if path[0] == "spec" and (len(path) == len(("spec", "field")) or path[1] == "disruption"):
            near = get_close_matches(str(path[-1]), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield Flaw(written_path((*at, *path)), "UnknownField", f"is not a known field; {hint}")


def _twins(field: str, names: Iterable[str]) -> Iterator[Flaw]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Flaw(field, "Duplicate", f"{name} is there {times} times; each needs a name of its own")


def _pool_flaws(pools: Iterable[NodePool], at: tuple[str, ...]) -> Iterator[Flaw]:
    for number, pool in enumerate(pools):
        for flaw in (*weight_flaws(pool.spec.weight), *controller_flaws(pool)):
            yield Flaw(f"{written_path((*at, number))}.{flaw.field}", flaw.rule, flaw.message)


def _policy_flaws(scenario: Scenario, name: str, policy: Policy) -> Iterator[Flaw]:
    at = ("policies", name, "pools")
    known = {pool.name for pool in scenario.pools}
    for pool in policy.pools:
        if pool not in known | {ALL_POOLS} and not scenario.cluster:
            yield Flaw(written_path((*at, pool)), "UnknownPool", f"there is no pool {pool}; there are {_names(known)}")
    try:
        changed = patched(scenario.pools, policy)
    except msgspec.ValidationError as error:
        flaw = explain(error, NodePool, {})
        yield Flaw(f"{written_path(at)}: {flaw.field}", flaw.rule, flaw.message)
    else:
        yield from _pool_flaws(changed, at)


def _names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"
