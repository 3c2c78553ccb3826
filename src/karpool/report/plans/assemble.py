"""From decisions to documents: a plan, or the explanation of a node."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import convert

from karpool.catalog.instance_types import Catalog, PriceOrigin
from karpool.catalog.price_sources import used_origins
from karpool.catalog.pricing import capacity_type_of
from karpool.cluster.resources import CPU, MEMORY
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.budgets import UNLIMITED, calendar
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.explain import NodeExplanation
from karpool.disruption.fleet_search.plan_summary import LowerBound
from karpool.disruption.plan import ClusterTotals, NodeOutcome, Plan, PlanStep
from karpool.disruption.policies import HAIR
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpool.model.owners import workload_of
from karpool.model.pod import Pod
from karpool.report.groups.group_parts import group_parts, managed_by
from karpool.report.plans import document
from karpool.report.price_words import prices_parts
from karpool.wire.quantity import Quantity

_AHEAD: Final = timedelta(days=7)
_NOTHING_SOLD: Final = Catalog(())


def plan_document(
    plan: Plan, warnings: tuple[str, ...] = (), catalog: Catalog = _NOTHING_SOLD
) -> document.PlanDocument:
    before, after = _totals(plan.before), _totals(plan.after)
    known = not any(step.command.unpriced for step in plan.steps)
    saved = plan.before.price - plan.after.price if known else None
    percent = None if saved is None or before.price_per_hour is None else _percent(saved, plan.before.price)
    return document.PlanDocument(
        time=plan.time,
        before=before,
        after=after,
        savings=document.Savings(
            price_per_hour=saved,
            percent=percent,
            known_per_hour=sum((step.command.savings for step in plan.steps if not step.command.unpriced), 0.0),
        ),
        commands=tuple(_command(step) for step in plan.steps),
        nodes=tuple(_verdict(outcome) for outcome in plan.fates),
        displaced=plan.displaced,
        unschedulable=tuple(document.Unschedulable(pod=pod, reasons=(why,)) for pod, why in plan.unschedulable),
        lower_bound=_known_bound(plan),
        curve=_curve(plan, known=None not in (before.price_per_hour, after.price_per_hour)),
        stops=tuple(
            document.StopPart(
                code=stop.code, message=stop.message, object=stop.object, node_pool=stop.pool, until=stop.until
            )
            for stop in plan.stops
        ),
        buffers=tuple(
            document.BufferPart(
                name=share.buffer,
                pods=share.pods,
                placed=share.placed,
                nodes=share.nodes,
                price_per_hour=share.price,
                reason=share.reason,
                message=share.message,
            )
            for share in plan.buffers
        ),
        groups=group_parts(plan),
        warnings=warnings,
        prices=prices_parts(_origins(plan, catalog)),
    )


def _origins(plan: Plan, catalog: Catalog) -> tuple[PriceOrigin, ...]:
    """Where the prices of nodes come from, and those of machines that are launched."""
    new = [replacement for step in plan.steps for replacement in step.command.replacements]
    types = (replacement.instance_types[0] for replacement in new if replacement.price is not None)
    return used_origins(catalog, (outcome.candidate.state.labels for outcome in plan.fates), types)


def _curve(plan: Plan, *, known: bool) -> tuple[document.CurvePart, ...]:
    """The price after each step; `known`: whether a price of nothing is one, and not that of nodes without a price."""
    return tuple(
        document.CurvePart(
            step=step, evictions=point.evictions, price_per_hour=point.price if known or point.price > HAIR else None
        )
        for step, point in enumerate(plan.curve)
    )


def _known_bound(plan: Plan) -> document.LowerBoundPart | None:
    """The least possible; where nothing is above zero because prices are unknown, it is unknown, too."""
    bound, before = plan.lower_bound, plan.before
    if bound is None or not before.nodes or (before.unpriced and (before.unpriced == before.nodes or bound.price <= 0)):
        return None
    return _lower_bound(bound, plan.after.price)


def _percent(saved: float, whole: float) -> float:
    return 100 * saved / whole if whole else 0.0


def _lower_bound(bound: LowerBound, price: float) -> document.LowerBoundPart:
    distance = 100 * max(0.0, price / bound.price - 1) if bound.price > 0 else None if price > 0 else 0.0
    return document.LowerBoundPart(
        price_per_hour=bound.price,
        method=bound.method,
        distance_percent=distance,
        blockers=tuple(
            document.BlockerPart(code=blocker.code, price_per_hour=blocker.price, nodes=blocker.nodes)
            for blocker in bound.blockers
        ),
    )


def _totals(totals: ClusterTotals) -> document.TotalsPart:
    known = totals.nodes == 0 or totals.unpriced < totals.nodes
    return document.TotalsPart(
        nodes=totals.nodes,
        pods=totals.pods,
        price_per_hour=totals.price if known else None,
        unpriced_nodes=totals.unpriced,
    )


def _command(step: PlanStep) -> document.PlannedCommand:
    command = step.command
    return document.PlannedCommand(
        step=step.number,
        method=command.method.value,
        reason=command.cause.value,
        decision=_decision(command),
        nodes=command.nodes,
        replacements=replacement_parts(command, step.replacement_names),
        placements=placement_parts(command, step.replacement_names),
        savings_per_hour=None if command.unpriced else command.savings,
        disruption_cost=command.disruption_cost,
        waves={name: waves.waves for name, waves in command.waves.items() if waves.waves is not None},
        ended=command.ended,
        displaced=command.displaced,
        begins=step.begins,
    )


def replacement_parts(command: Command, names: Sequence[str]) -> tuple[document.ReplacementPart, ...]:
    """The nodes that come with a command, under these names."""
    return tuple(
        document.ReplacementPart(
            name=name,
            node_pool=replacement.pool,
            capacity_type=replacement.capacity_type,
            zones=replacement.zones,
            instance_types=replacement.instance_types,
            price_per_hour=replacement.price,
        )
        for name, replacement in zip(names, command.new_nodes, strict=True)
    )


def placement_parts(command: Command, names: Sequence[str]) -> tuple[document.PlacementPart, ...]:
    """Where a command moves pods; `names` are those of its replacements."""
    return tuple(
        document.PlacementPart(
            pod=move.pod, source=move.source, target=names[move.target] if isinstance(move.target, int) else move.target
        )
        for move in command.places
        if not move.leaving and not move.headroom
    )


def _verdict(outcome: NodeOutcome) -> document.NodeVerdict:
    allocatable = outcome.candidate.state.allocatable
    return document.NodeVerdict(
        **_facts(outcome.candidate),
        pods=outcome.pods,
        verdict=_word(outcome.step.command if outcome.step else None),
        step=outcome.step.number if outcome.step else None,
        reasons=outcome.reasons,
        utilisation=outcome.utilisation,
        requests=outcome.requested,
        allocatable={name: amount for name, amount in allocatable.items() if name in ("cpu", "memory")},
    )


def _facts(candidate: Candidate) -> dict[str, Any]:
    """What plans and explanations say of a node alike."""
    labels = candidate.state.labels
    return {
        "name": candidate.name,
        "node_pool": candidate.state.pool,
        "instance_type": labels.get(INSTANCE_TYPE, ""),
        "zone": labels.get(ZONE, ""),
        "capacity_type": capacity_type_of(labels) if candidate.state.group else labels.get(CAPACITY_TYPE, ""),
        "price_per_hour": candidate.price,
        "managed_by": managed_by(candidate.state),
    }


def _word(command: Command | None) -> document.Verdict:
    return "keep" if command is None else _decision(command)


def _decision(command: Command) -> document.Decision:
    decision: document.Decision = convert(command.decision, document.Decision)
    return decision


def explanation(
    context: DecisionContext, explained: NodeExplanation, plan: Plan | None = None
) -> document.ExplanationDocument:
    """Everything about one node; `plan`: a plan for the same cluster, to say what that does with the node."""
    candidate, node = explained.candidate, explained.candidate.state.node
    created = node.metadata.creation_timestamp if node else None
    pods = (context.snapshot.pods.get(row) for row in context.snapshot.pods_on(candidate.row))
    together = explained.together
    replacements = _alternatives(explained.alone or together or explained.command)
    new = (part.instance_type for part in replacements if part.price_per_hour is not None)
    goes = explained.alone is not None or together is not None or all(rule.passed for rule in explained.outcomes)
    return document.ExplanationDocument(
        time=context.now,
        prices=prices_parts(used_origins(context.catalog, [candidate.state.labels], new)),
        node=document.ExplainedNodePart(
            **_facts(candidate),
            pods=sum(not pod.is_daemon and not context.expected(pod) for pod in pods),
            age_seconds=(context.now - created).total_seconds() if created else None,
        ),
        verdict=_verdict_of(explained) if goes else "keep",
        utilisation=_utilisation(context.snapshot, candidate),
        rules=convert((*explained.outcomes, *explained.repairs), tuple[document.RuleResult, ...], from_attributes=True),
        pods=convert(explained.destinations, tuple[document.PodDestination, ...], from_attributes=True),
        alternative=next(iter(replacements), None),
        unblock=tuple(
            document.Unblock(condition=w.condition, savings_per_hour=w.savings) for w in explained.alternatives
        ),
        calendar=_calendar(context, candidate),
        replacements=replacements,
        group=None
        if together is None
        else document.GroupPart(nodes=together.nodes, savings_per_hour=None if together.unpriced else together.savings),
        in_plan=None if plan is None else _in_plan(plan, candidate.name),
        alone=_alone(explained),
    )


def _in_plan(plan: Plan, name: str) -> document.InPlanPart:
    outcome = next(outcome for outcome in plan.fates if outcome.candidate.name == name)
    return document.InPlanPart(
        verdict=_word(outcome.step.command if outcome.step else None),
        step=outcome.step.number if outcome.step else None,
        steps=len(plan.steps),
        reasons=outcome.reasons,
    )


def _alone(explained: NodeExplanation) -> document.AlonePart:
    if explained.hindrances:
        return document.AlonePart(verdict="keep", reasons=explained.hindrances, savings_per_hour=None)
    command = explained.alone or (None if explained.candidate.empty else explained.command)
    if command is None:
        return document.AlonePart(verdict="delete", reasons=(), savings_per_hour=explained.candidate.price)
    savings = None if command.unpriced else command.savings
    return document.AlonePart(verdict=_word(command), reasons=(), savings_per_hour=savings)


def _calendar(context: DecisionContext, candidate: Candidate) -> tuple[document.AllowedUntil, ...]:
    """What the budgets of a node's pool allow in the next week; nothing if that never changes."""
    if candidate.pool is None:
        return ()
    cause = Cause.EMPTY if candidate.empty else Cause.UNDERUTILIZED
    intervals = calendar(
        candidate.pool,
        cause,
        context.pool_size(candidate.pool.name),
        context.now,
        _AHEAD,
        annotated=context.settings.annotated_budgets,
    )
    if len(intervals) == 1:
        return ()
    return tuple(
        document.AllowedUntil(
            start=entry.start, end=entry.end, allowed=None if entry.allowed >= UNLIMITED else entry.allowed
        )
        for entry in intervals
    )


def _verdict_of(explained: NodeExplanation) -> document.Verdict:
    if explained.alone is not None or explained.together is not None:
        return _word(explained.alone or explained.together)
    return "delete" if explained.candidate.empty else _word(explained.command)


def _alternatives(command: Command | None) -> tuple[document.AlternativePart, ...]:
    return tuple(
        document.AlternativePart(
            node_pool=new.pool,
            instance_type=new.instance_types[0],
            zone=", ".join(new.zones),
            capacity_type=new.capacity_type,
            price_per_hour=new.price,
            name=f"new-{number}",
        )
        for number, new in enumerate(() if command is None else command.new_nodes, 1)
    )


def _utilisation(snapshot: Snapshot, candidate: Candidate) -> dict[str, document.Utilisation]:
    utilisation = {}
    for name, column in snapshot.resources.index.items():
        taken = int(snapshot.nodes.taken[candidate.row, column])
        room = candidate.state.allocatable.get(name)
        if room is None or not room.nano:
            continue
        requested = Quantity(taken * (10**6 if column == CPU else 10**9))
        utilisation[name] = document.Utilisation(
            requested=requested, allocatable=room, ratio=requested.nano / room.nano
        )
    return utilisation


def draw(context: DecisionContext) -> tuple[document.DrawnNode, ...]:
    return tuple(_drawn(context, context.candidate(row)) for row in context.rows())


def _drawn(context: DecisionContext, candidate: Candidate) -> document.DrawnNode:
    snapshot = context.snapshot
    room = candidate.state.allocatable
    cpu = room["cpu"].milli if "cpu" in room else 0
    memory = room["memory"].units if "memory" in room else 0
    pods = []
    for row in snapshot.pods_on(candidate.row):
        requests = snapshot.classes.requests[snapshot.pods.class_of[row]]
        pod = snapshot.pods.get(row)
        pods.append(
            document.DrawnPod(
                name=pod.key,
                cpu=int(requests[CPU]) / cpu if cpu else 0.0,
                memory=int(requests[MEMORY]) / memory if memory else 0.0,
                workload=_workload(pod),
                daemon=pod.is_daemon,
            )
        )
    return document.DrawnNode(
        name=candidate.name,
        cpu=cpu / 1000,
        memory=memory,
        price_per_hour=candidate.price,
        pods=tuple(sorted(pods, key=lambda pod: (pod.daemon, -pod.cpu, pod.name))),
        node_pool=candidate.state.pool,
        instance_type=candidate.state.labels.get(INSTANCE_TYPE, ""),
    )


def _workload(pod: Pod) -> str:
    """The workload of a pod as a page names it; empty for a pod that nobody made."""
    if not pod.metadata.owner_references:
        return ""
    workload = workload_of(pod)
    return f"{workload.kind} {workload.name}"
