"""From decisions to documents: a plan or the story of a node as other programs and people read it."""

from typing import Final

from karpool.cluster.resources import CPU, MEMORY
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.budgets import UNLIMITED, calendar
from karpool.disruption.command import Cause, Command, Move, Replacement
from karpool.disruption.explain import NodeStory
from karpool.disruption.plan import Fate, Plan, Step, Totals
from karpool.disruption.situation import Situation, Standing
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpool.model.pod import Pod
from karpool.model.quantity import Quantity
from karpool.report import document

_DAYS_AHEAD: Final = 7


def plan_document(plan: Plan) -> document.Plan:
    """A plan as its document."""
    before, after = _totals(plan.before), _totals(plan.after)
    known = not any(step.command.unpriced for step in plan.steps)
    saved = plan.before.price - plan.after.price if known else None
    percent = None if saved is None else 100 * saved / plan.before.price if plan.before.price else 0.0
    return document.Plan(
        time=plan.time,
        before=before,
        after=after,
        savings=document.Savings(price_per_hour=saved, percent=percent),
        commands=tuple(_command(step) for step in plan.steps),
        nodes=tuple(_verdict(fate) for fate in plan.fates),
        unschedulable=tuple(document.Unschedulable(pod=pod, reasons=(why,)) for pod, why in plan.unschedulable),
    )


def _totals(totals: Totals) -> document.Totals:
    known = totals.nodes == 0 or totals.unpriced < totals.nodes
    return document.Totals(
        nodes=totals.nodes,
        pods=totals.pods,
        price_per_hour=totals.price if known else None,
        unpriced_nodes=totals.unpriced,
    )


def _command(step: Step) -> document.PlannedCommand:
    command = step.command
    return document.PlannedCommand(
        step=step.number,
        method=command.method.value,
        reason=command.cause.value,
        decision="replace" if command.replacements else "delete",
        nodes=command.nodes,
        replacements=tuple(
            _replacement(name, new) for name, new in zip(step.replacement_names, command.replacements, strict=True)
        ),
        placements=tuple(_placement(move, step) for move in command.moves if not move.leaving),
        savings_per_hour=None if command.unpriced else command.savings,
        disruption_cost=command.disruption_cost,
        waves={name: waves.waves for name, waves in command.waves.items() if waves.waves is not None},
        ended=command.ended,
    )


def _replacement(name: str, new: Replacement) -> document.Replacement:
    return document.Replacement(
        name=name,
        node_pool=new.pool,
        capacity_type=new.capacity_type,
        zones=new.zones,
        instance_types=new.instance_types,
        price_per_hour=new.price,
    )


def _placement(move: Move, step: Step) -> document.Placement:
    target = step.replacement_names[move.target] if isinstance(move.target, int) else move.target
    return document.Placement(pod=move.pod, source=move.source, target=target)


def _verdict(fate: Fate) -> document.NodeVerdict:
    labels, state = fate.standing.state.labels, fate.standing.state
    return document.NodeVerdict(
        name=fate.standing.name,
        node_pool=state.pool,
        instance_type=labels.get(INSTANCE_TYPE, ""),
        price_per_hour=fate.standing.price,
        pods=fate.pods,
        verdict=_word(fate.step.command if fate.step else None),
        step=fate.step.number if fate.step else None,
        reasons=fate.reasons,
        zone=labels.get(ZONE, ""),
        capacity_type=labels.get(CAPACITY_TYPE, ""),
        utilisation=fate.utilisation,
        requests=fate.requested,
        allocatable={name: amount for name, amount in state.allocatable.items() if name in ("cpu", "memory")},
    )


def _word(command: Command | None) -> document.Verdict:
    if command is None:
        return "keep"
    return "replace" if command.replacements else "delete"


def explanation(situation: Situation, story: NodeStory) -> document.Explanation:
    """The story of a node as its document."""
    standing = story.standing
    labels, node = standing.state.labels, standing.state.node
    created = node.metadata.creation_timestamp if node else None
    pods = (situation.snapshot.pods.get(row) for row in situation.snapshot.pods_on(standing.row))
    goes = story.drift is not None or all(ruling.passed for ruling in story.rulings)
    return document.Explanation(
        time=situation.now,
        node=document.NodeFacts(
            name=standing.name,
            node_pool=standing.state.pool,
            instance_type=labels.get(INSTANCE_TYPE, ""),
            zone=labels.get(ZONE, ""),
            capacity_type=labels.get(CAPACITY_TYPE, ""),
            price_per_hour=standing.price,
            pods=sum(not pod.is_daemon and not situation.expected(pod) for pod in pods),
            age_seconds=(situation.now - created).total_seconds() if created else None,
        ),
        verdict=_verdict_of(story) if goes else "keep",
        utilisation=_utilisation(situation.snapshot, standing),
        rules=tuple(document.RuleResult(rule=r.rule, passed=r.passed, reason=r.reason) for r in story.rulings),
        pods=tuple(document.PodDestination(pod=d.pod, target=d.target, reason=d.reason) for d in story.destinations),
        alternative=_alternative(story.drift or story.command),
        unblock=tuple(document.Unblock(condition=w.condition, savings_per_hour=w.savings) for w in story.ways),
        calendar=_calendar(situation, standing),
    )


def _calendar(situation: Situation, standing: Standing) -> tuple[document.AllowedUntil, ...]:
    """When the budgets of a node's pool allow how much, in the next week; nothing if that is always the same."""
    if standing.pool is None:
        return ()
    cause = Cause.EMPTY if standing.empty else Cause.UNDERUTILIZED
    found = calendar(
        standing.pool,
        cause,
        situation.pool_size(standing.pool.name),
        situation.now,
        _DAYS_AHEAD,
        annotated=situation.settings.annotated_budgets,
    )
    if len(found) == 1:
        return ()
    return tuple(
        document.AllowedUntil(start=one.start, end=one.end, allowed=None if one.allowed >= UNLIMITED else one.allowed)
        for one in found
    )


def _verdict_of(story: NodeStory) -> document.Verdict:
    if story.drift is not None:
        return _word(story.drift)
    return "delete" if story.standing.empty else _word(story.command)


def _alternative(command: Command | None) -> document.Alternative | None:
    if command is None or not command.replacements:
        return None
    new = command.replacements[0]
    return document.Alternative(
        node_pool=new.pool,
        instance_type=new.instance_types[0],
        zone=", ".join(new.zones),
        capacity_type=new.capacity_type,
        price_per_hour=new.price,
    )


def _utilisation(snapshot: Snapshot, standing: Standing) -> dict[str, document.Utilisation]:
    """Requested and allocatable of every resource that the node has or its pods ask for."""
    found = {}
    for name, column in snapshot.resources.index.items():
        taken = int(snapshot.nodes.taken[standing.row, column])
        room = standing.state.allocatable.get(name)
        if room is None or not room.nano:
            continue
        asked = Quantity(taken * (10**6 if column == CPU else 10**9))
        found[name] = document.Utilisation(requested=asked, allocatable=room, ratio=asked.nano / room.nano)
    return found


def draw(situation: Situation) -> tuple[document.DrawnNode, ...]:
    """All nodes with their pods, as a page draws them."""
    return tuple(_drawn(situation, situation.standing(row)) for row in situation.rows())


def _drawn(situation: Situation, standing: Standing) -> document.DrawnNode:
    snapshot = situation.snapshot
    room = standing.state.allocatable
    cpu = room["cpu"].milli if "cpu" in room else 0
    memory = room["memory"].units if "memory" in room else 0
    pods = []
    for row in snapshot.pods_on(standing.row):
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
        name=standing.name,
        cpu=cpu / 1000,
        memory=memory,
        price_per_hour=standing.price,
        pods=tuple(sorted(pods, key=lambda pod: (pod.daemon, -pod.cpu, pod.name))),
        node_pool=standing.state.pool,
        instance_type=standing.state.labels.get(INSTANCE_TYPE, ""),
    )


def _workload(pod: Pod) -> str:
    """What a person calls the owner of a pod: a ReplicaSet stands for its Deployment."""
    owner = next(iter(pod.metadata.owner_references), None)
    if owner is None:
        return ""
    if owner.kind == "ReplicaSet":
        return f"Deployment {owner.name.rpartition('-')[0] or owner.name}"
    return f"{owner.kind} {owner.name}"
