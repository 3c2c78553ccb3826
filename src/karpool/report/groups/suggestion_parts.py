"""What to have instead of node groups, as a document, with manifests to start from."""

from collections.abc import Iterable, Mapping
from typing import Any

from karpool.disruption.policies import HAIR
from karpool.disruption.suggested_fleets import SuggestedFleet
from karpool.disruption.suggestions import PoolSuggestion, Suggestions
from karpool.model.nodepool import NODEPOOL_API, NodePool
from karpool.report.plans.document import FleetPart, GroupSuggestionPart, PoolSuggestionPart, SuggestionsPart


def suggestions_part(found: Suggestions, planned: Mapping[str, float | None]) -> SuggestionsPart:
    """Suggestions as a document; `planned`: what each group costs after the steps of the plan."""
    return SuggestionsPart(
        pools=tuple(
            PoolSuggestionPart(
                name=entry.pool.name,
                groups=entry.groups,
                nodes=entry.nodes,
                price_per_hour=entry.price,
                planned_price_per_hour=_sum(planned.get(group) for group in entry.groups),
                fleet=_fleet(entry.fleet),
                manifest=_manifest(entry),
            )
            for entry in found.pools
        ),
        groups=tuple(
            GroupSuggestionPart(
                name=entry.group,
                nodes=entry.nodes,
                price_per_hour=entry.price,
                planned_price_per_hour=planned.get(entry.group),
                fleet=_fleet(entry.fleet),
            )
            for entry in found.groups
            if _less_than(entry.fleet.price, planned.get(entry.group))
        ),
    )


def _less_than(price: float | None, planned: float | None) -> bool:
    """Whether other machines cost less than what the plan makes of today's; what is not known is no hindrance."""
    return price is None or planned is None or price < planned - HAIR


def _sum(prices: Iterable[float | None]) -> float | None:
    listed = list(prices)
    known = [price for price in listed if price is not None]
    return sum(known) if len(known) == len(listed) else None


def _fleet(fleet: SuggestedFleet) -> FleetPart:
    return FleetPart(
        nodes=fleet.nodes,
        instance_types=dict(fleet.types),
        capacity_types=dict(fleet.capacity_types),
        price_per_hour=fleet.price,
        unplaced_pods=fleet.unplaced,
        refusal=fleet.refusal,
    )


def _manifest(entry: PoolSuggestion) -> dict[str, Any]:
    """A NodePool to start from; its node class has to be there."""
    template = entry.pool.spec.template
    ref = template.spec.node_class_ref
    spec: dict[str, Any] = {
        **({"nodeClassRef": {"group": ref.group, "kind": ref.kind, "name": ref.name}} if ref.kind else {}),
        "requirements": [
            {"key": rule.key, "operator": rule.operator, "values": list(rule.values)}
            for rule in template.spec.requirements
        ],
    }
    if template.spec.taints:
        spec["taints"] = [
            {name: value for name, value in (("key", t.key), ("value", t.value), ("effect", t.effect)) if value}
            for t in template.spec.taints
        ]
    labels = dict(template.metadata.labels)
    made: dict[str, Any] = {**({"metadata": {"labels": labels}} if labels else {}), "spec": spec}
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"}
    return {
        "apiVersion": NODEPOOL_API,
        "kind": NodePool.__name__,
        "metadata": {"name": entry.pool.name},
        "spec": {"template": made, "disruption": disruption},
    }
