"""Validation: every problem of what was loaded, also those that only a controller would find."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from karpool.model.loading import Loaded
from karpool.model.rules.pools import controller_flaws, rate_flaws
from karpool.model.rules.references import claim_references, pod_references
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, Problem

T = TypeVar("T", bound=Object)


def validate(loaded: Loaded) -> tuple[Problem, ...]:
    """Every rule that the objects break, those that make the input unusable first."""
    refused = {problem.object for problem in loaded.problems}
    valid = (pool for pool in loaded.objects.node_pools if f"NodePool {pool.name}" not in refused)
    ignored = _problems(loaded, "NodePool", valid, controller_flaws)
    limits = _problems(loaded, "Namespace", loaded.objects.namespaces, rate_flaws)
    return (*loaded.problems, *loaded.omissions, *ignored, *limits, *_dangling(loaded, refused))


def _dangling(loaded: Loaded, refused: set[str]) -> Iterator[Problem]:
    """References to missing objects; a refused object counts as present, because it has a problem of its own."""
    pools = {pool.name for pool in loaded.objects.node_pools} | _named(refused, "NodePool", "Provisioner")
    nodes = {node.name for node in loaded.objects.nodes} | _named(refused, "Node")
    yield from _problems(loaded, "NodeClaim", loaded.objects.node_claims, lambda claim: claim_references(claim, pools))
    yield from _problems(loaded, "Pod", loaded.objects.pods, lambda pod: pod_references(pod, nodes))


def _named(refused: set[str], *kinds: str) -> set[str]:
    return {name for about in refused for kind, _, name in (about.partition(" "),) if kind in kinds}


def _problems(
    loaded: Loaded, kind: str, objects: Iterable[T], rule: Callable[[T], Iterator[Flaw]]
) -> Iterator[Problem]:
    for entry in objects:
        for flaw in rule(entry):
            yield loaded.problem(flaw, kind, entry.key)
