"""Validation: every problem of what was loaded, also those that only a controller would find."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from karpool.model.objects import Objects
from karpool.model.reading.consequences import independent
from karpool.model.reading.loading import Loaded
from karpool.model.rules.pools import controller_flaws, rate_flaws
from karpool.model.rules.references import claim_references, pod_references
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, Problem

T = TypeVar("T", bound=Object)


def validate(loaded: Loaded) -> tuple[Problem, ...]:
    """Every rule that the objects break, object by object, those first that make the input unusable."""
    objects = loaded.all_objects
    refused = {problem.object for problem in loaded.problems}
    ignored = _problems(loaded, "NodePool", objects.node_pools, controller_flaws)
    limits = _problems(loaded, "Namespace", objects.namespaces, rate_flaws)
    found = (*loaded.problems, *loaded.omissions, *ignored, *limits, *_dangling(loaded, objects, refused))
    order = {(problem.file, problem.object): number for number, problem in reversed(tuple(enumerate(found)))}
    return tuple(sorted(found, key=lambda problem: order[problem.file, problem.object]))


def _dangling(loaded: Loaded, objects: Objects, refused: set[str]) -> Iterator[Problem]:
    """References to missing objects; a refused object counts as present, because it has a problem of its own."""
    pools = {pool.name for pool in objects.node_pools} | _named(refused, "NodePool", "Provisioner")
    nodes = {node.name for node in objects.nodes} | _named(refused, "Node")
    yield from _problems(loaded, "NodeClaim", objects.node_claims, lambda claim: claim_references(claim, pools))
    yield from _problems(loaded, "Pod", objects.pods, lambda pod: pod_references(pod, nodes))


def _named(refused: set[str], *kinds: str) -> set[str]:
    return {name for about in refused for kind, _, name in (about.partition(" "),) if kind in kinds}


def _problems(
    loaded: Loaded, kind: str, objects: Iterable[T], rule: Callable[[T], Iterator[Flaw]]
) -> Iterator[Problem]:
    known: dict[str, list[Flaw]] = {}
    for problem in loaded.problems:
        known.setdefault(problem.object, []).append(Flaw(problem.field, problem.rule, problem.message))
    for entry in objects:
        for flaw in independent(rule(entry), known.get(f"{kind} {entry.key}", ())):
            yield loaded.problem(flaw, kind, entry.key)
