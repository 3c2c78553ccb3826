"""Rules of NodePools and NodeClaims.

Four groups: what an API server refuses (`refused_…`), what it requires and decisions do not (`omitted_fields`), what it
refuses and decisions understand (`spelling_flaws`), and what only the controller refuses (`controller_flaws`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpool.model.annotations import (
    AnnotationError,
    annotated_grace_period,
    annotation_path,
    balanced_k,
    denies_pause,
    minimum_savings,
    most_evictions,
    written_budgets,
)
from karpool.model.labels import BUDGETS, NODEPOOL, PAUSED
from karpool.model.nodepool import NodeClaim, NodePool, TemplateSpec
from karpool.model.rules.budgets import budget_flaws, schedule_flaws, span_flaws
from karpool.model.rules.names import LONGEST_VALUE, is_domain, wrong_key, wrong_value
from karpool.model.rules.requirements import key_flaws, requirement_flaws, requirement_name_flaws
from karpool.model.workloads import Namespace
from karpool.wire.problems import Flaw

POLICIES: Final = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
TEMPLATE: Final = "spec.template.spec"
_LARGEST_WEIGHT: Final = 100
_MOST_LABELS: Final = 100


def refused_pool(pool: NodePool, written: Any) -> Iterator[Flaw]:
    """What an API server refuses in a NodePool; `written` is the same object as plain values."""
    yield from weight_flaws(pool.spec.weight)
    yield from requirement_flaws(pool.spec.template.spec.requirements, f"{TEMPLATE}.requirements")
    yield from _claim_span_flaws(written, TEMPLATE)
    yield from _disruption_flaws(pool, written)
    yield from _static_flaws(pool)
    yield from _annotation_flaws(pool)


def refused_claim(claim: NodeClaim, written: Any) -> Iterator[Flaw]:
    yield from requirement_flaws(claim.spec.requirements, "spec.requirements")
    yield from _claim_span_flaws(written, "spec")


def omitted_fields(written: Any, path: str) -> Iterator[Flaw]:
    """Fields that an API server requires, and that the spec of a claim at this path leaves out."""
    spec = value_at(written, *path.split("."))
    if value_at(spec, "requirements") is None:
        yield Flaw(f"{path}.requirements", "MissingField", "is missing; list requirements, or write []")
    place, reference = f"{path}.nodeClassRef", value_at(spec, "nodeClassRef")
    if reference is None:
        yield Flaw(place, "NodeClassRef", "is missing; name the group, kind and name of a node class")
        return
    for part in ("group", "kind", "name"):
        if not value_at(reference, part):
            yield Flaw(
                f"{place}.{part}", "NodeClassRef", "is missing or empty; a node class needs group, kind and name"
            )


def spelling_flaws(written: Any, path: str) -> Iterator[Flaw]:
    """What an API server refuses in a pool or a claim only for how it is written: what is meant is clear."""
    name = value_at(written, "metadata", "name")
    if isinstance(name, str) and name and not is_domain(name):
        message = f"{name[:60]!r} is not a name; write lower-case letters, digits, '-' and '.', at most 253 characters"
        yield Flaw("metadata.name", "ObjectName", message)
    group = value_at(written, *path.split("."), "nodeClassRef", "group")
    if isinstance(group, str) and "/" in group:
        message = f"{group[:60]!r} has a version; write the group alone, {group.partition('/')[0][:60]!r}"
        yield Flaw(f"{path}.nodeClassRef.group", "NodeClassRef", message)
    for resource, amount in _mapping(value_at(written, "spec", "limits")).items():
        if isinstance(amount, float):
            yield Flaw(f"spec.limits.{resource}", "Quantity", f"{amount} is a fraction; write it in quotes, '{amount}'")
    budgets = value_at(written, "spec", "disruption", "budgets")
    for index, budget in enumerate(budgets if isinstance(budgets, list) else ()):
        place, nodes = f"spec.disruption.budgets[{index}]", value_at(budget, "nodes")
        if isinstance(nodes, int):
            yield Flaw(f"{place}.nodes", "BudgetNodes", f"{nodes} is a number; write it in quotes, '{nodes}'")
        yield from _repeated(value_at(budget, "reasons"), f"{place}.reasons")


def _repeated(reasons: Any, path: str) -> Iterator[Flaw]:
    listed = reasons if isinstance(reasons, list) else []
    for position, reason in enumerate(listed):
        if reason in listed[:position]:
            yield Flaw(f"{path}[{position}]", "BudgetReason", f"{reason!s:.40} is listed twice; keep one")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def value_at(value: Any, *path: str) -> Any:
    """The value at a path in plain values; None where the path ends early."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def weight_flaws(weight: int | None) -> Iterator[Flaw]:
    if weight is not None and not 1 <= weight <= _LARGEST_WEIGHT:
        message = f"{weight} is out of range; write 1 to {_LARGEST_WEIGHT}, or leave it out"
        yield Flaw("spec.weight", "WeightRange", message)


def _claim_span_flaws(written: Any, path: str) -> Iterator[Flaw]:
    spec = value_at(written, *path.split("."))
    yield from span_flaws(value_at(spec, "expireAfter"), f"{path}.expireAfter")
    yield from span_flaws(value_at(spec, "terminationGracePeriod"), f"{path}.terminationGracePeriod", never=False)


def _disruption_flaws(pool: NodePool, written: Any) -> Iterator[Flaw]:
    disruption = pool.spec.disruption
    plain = value_at(written, "spec", "disruption")
    for field in ("consolidateAfter", "consolidationGracePeriod"):
        yield from span_flaws(value_at(plain, field), f"spec.disruption.{field}")
    if disruption.consolidation_policy not in POLICIES:
        message = f"{disruption.consolidation_policy[:40]!r} is not a policy; use one of {', '.join(POLICIES)}"
        yield Flaw("spec.disruption.consolidationPolicy", "ConsolidationPolicy", message)
    if (budgets := value_at(plain, "budgets")) is not None:
        yield from budget_flaws(disruption.budgets, budgets, "spec.disruption.budgets")


def _static_flaws(pool: NodePool) -> Iterator[Flaw]:
    if pool.spec.replicas is None:
        return
    if pool.spec.replicas < 0:
        yield Flaw("spec.replicas", "ReplicasRange", f"{pool.spec.replicas} is negative; write 0 or more")
    if pool.spec.weight is not None:
        yield Flaw("spec.weight", "StaticPool", "is not allowed together with replicas; remove one of the two")
    for resource in pool.spec.limits:
        if resource != "nodes":
            message = "is not allowed together with replicas; a static pool can only limit nodes"
            yield Flaw(f"spec.limits.{resource}", "StaticPool", message)


def _annotation_flaws(pool: NodePool) -> Iterator[Flaw]:
    for read in (annotated_grace_period, balanced_k, minimum_savings, written_budgets):
        try:
            read(pool)
        except AnnotationError as error:
            yield from error.flaws


def pause_flaws(pool: NodePool) -> Iterator[Flaw]:
    """A pause that was hardly meant: any value of the annotation pauses."""
    text = pool.metadata.annotations.get(PAUSED, "")
    if denies_pause(text):
        message = f"{text[:40]!r} pauses the pool, as any value does; remove the annotation to let it go on"
        yield Flaw(annotation_path(PAUSED), "PausedAllTheSame", message)


def long_name_flaws(pool: NodePool) -> Iterator[Flaw]:
    """A name that an API server accepts, and no node can carry: it becomes the value of a label."""
    if (length := len(pool.name)) > LONGEST_VALUE:
        message = (
            f"has {length} characters; nodes carry it as label {NODEPOOL}, whose value has {LONGEST_VALUE} at most"
        )
        yield Flaw("metadata.name", "NameTooLong", message)


def controller_flaws(pool: NodePool) -> Iterator[Flaw]:
    """What makes a controller ignore a pool: labels, taints and schedules that can never work."""
    template = pool.spec.template
    yield from requirement_name_flaws(template.spec.requirements, f"{TEMPLATE}.requirements")
    yield from _label_flaws(template.metadata.labels)
    yield from _taint_flaws(template.spec)
    yield from schedule_flaws(pool.spec.disruption.budgets, "spec.disruption.budgets")
    try:
        annotated = written_budgets(pool)
    except AnnotationError:
        return  # said already: `refused_pool` reads it, too
    yield from schedule_flaws(annotated or (), annotation_path(BUDGETS))


def rate_flaws(namespace: Namespace) -> Iterator[Flaw]:
    """What keeps all pods of a namespace where they are: a rate of evictions that cannot be read."""
    try:
        most_evictions(namespace)
    except AnnotationError as error:
        yield from error.flaws


def _label_flaws(labels: Mapping[str, str]) -> Iterator[Flaw]:
    path = "spec.template.metadata.labels"
    if len(labels) > _MOST_LABELS:
        yield Flaw(path, "TooManyLabels", f"{len(labels)} labels are too many; at most {_MOST_LABELS} are allowed")
    for key, value in labels.items():
        yield from key_flaws(key, f"{path}[{key}]")
        if message := wrong_value(value):
            yield Flaw(f"{path}[{key}]", "LabelValue", message)


def _taint_flaws(spec: TemplateSpec) -> Iterator[Flaw]:
    seen: set[tuple[str, str]] = set()
    for name, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for index, taint in enumerate(taints):
            path = f"{TEMPLATE}.{name}[{index}]"
            if not taint.key:
                yield Flaw(f"{path}.key", "TaintKey", "is empty; name the taint")
            elif message := wrong_key(taint.key):
                yield Flaw(f"{path}.key", "TaintKey", message)
            if message := wrong_value(taint.value):
                yield Flaw(f"{path}.value", "LabelValue", message)
            if (taint.key, taint.effect) in seen:
                message = f"{taint.key}:{taint.effect} is listed twice in taints and startupTaints; keep one"
                yield Flaw(path, "DuplicateTaint", message)
            seen.add((taint.key, taint.effect))
