"""Plans as clusters give them: a dozen nodes told by hand, and as many as asked for by rule."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from karpool.model.reasons import Reason
from karpool.report.costs.costs_document import CostGroupPart, CostPart, CostsPart
from karpool.report.plans.document import (
    AlternativePart,
    BlockerPart,
    CurvePart,
    Drawing,
    DrawnNode,
    DrawnPod,
    ExplainedNodePart,
    ExplanationDocument,
    LowerBoundPart,
    NodeGroupPart,
    NodeVerdict,
    PlacementPart,
    PlanDocument,
    PlannedCommand,
    PodDestination,
    ReplacementPart,
    RuleResult,
    Savings,
    StopPart,
    TotalsPart,
    Unblock,
    Unschedulable,
    Utilisation,
)
from karpool.wire.quantity import parse_quantity

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
GIB = 2**30
TYPES = {
    "m6i.large": (1.93, 7.1, 0.096),
    "m6i.xlarge": (3.92, 14.8, 0.192),
    "m6i.2xlarge": (7.91, 30.4, 0.384),
    "c6i.xlarge": (3.92, 6.9, 0.17),
    "r6i.xlarge": (3.92, 30.2, 0.252),
}
DAEMONS = (
    ("kube-system/kube-proxy", 0.1, 0.125),
    ("kube-system/aws-node", 0.05, 0.125),
    ("monitoring/agent", 0.1, 0.25),
)
# pod, cores, GiB
WORKLOADS = {
    "cart": ("shop", 0.5, 1.0),
    "web": ("shop", 0.25, 0.5),
    "search": ("shop", 1.0, 4.0),
    "postgres": ("data", 1.0, 6.0),
    "kafka": ("data", 0.75, 3.0),
    "prometheus": ("monitoring", 0.8, 5.0),
    "ingress": ("ingress-nginx", 0.2, 0.25),
    "runner": ("ci", 1.5, 2.0),
    "model": ("ml", 2.0, 8.0),
}


def _pod(index: int, workload: str, cores: float, gib: float) -> DrawnPod:
    namespace, cpu, memory = WORKLOADS[workload]
    kind = "StatefulSet" if workload in {"postgres", "kafka"} else "Deployment"
    name = f"{namespace}/{workload}-{index}" if kind == "StatefulSet" else f"{namespace}/{workload}-7c9f-{index:04x}"
    return DrawnPod(name=name, cpu=cpu / cores, memory=memory / gib, workload=f"{kind} {workload}")


def _node(name: str, *, pool: str, instance_type: str, pods: Iterable[tuple[int, str]]) -> DrawnNode:
    """A node; each pod is a number and the name of its workload. Nodes of the pool `spot` are spot nodes."""
    cores, gib, price = TYPES[instance_type]
    daemons = [
        DrawnPod(
            name=f"{pod}-{name[-4:]}", cpu=cpu / cores, memory=memory / gib, workload=f"DaemonSet {pod}", daemon=True
        )
        for pod, cpu, memory in DAEMONS
    ]
    return DrawnNode(
        name=name,
        cpu=cores,
        memory=gib * GIB,
        price_per_hour=price * 0.35 if pool == "spot" else price,
        pods=(*daemons, *(_pod(index, workload, cores, gib) for index, workload in pods)),
        node_pool=pool,
        instance_type=instance_type,
    )


def _verdict(node: DrawnNode, reasons: tuple[Reason, ...], command: PlannedCommand | None) -> NodeVerdict:
    cpu, memory = sum(pod.cpu for pod in node.pods), sum(pod.memory for pod in node.pods)
    return NodeVerdict(
        name=node.name,
        node_pool=node.node_pool,
        instance_type=node.instance_type,
        price_per_hour=node.price_per_hour,
        pods=sum(not pod.daemon for pod in node.pods),
        verdict="keep" if command is None else command.decision,
        step=None if command is None else command.step,
        reasons=reasons if command is None else (),
        zone="us-east-1a",
        capacity_type="spot" if node.node_pool == "spot" else "on-demand",
        utilisation={"cpu": cpu, "memory": memory},
        requests={"cpu": parse_quantity(round(cpu * node.cpu, 3)), "memory": parse_quantity(int(memory * node.memory))},
        allocatable={"cpu": parse_quantity(node.cpu), "memory": parse_quantity(int(node.memory))},
    )


def moved(before: tuple[DrawnNode, ...], commands: tuple[PlannedCommand, ...]) -> tuple[DrawnNode, ...]:
    """The drawing after the commands: removed nodes gone, new ones there, pods where they were placed."""
    nodes = {node.name: node for node in before}
    for command in commands:
        for new in command.replacements:
            nodes[new.name] = replace(
                _node(new.name, pool=new.node_pool, instance_type=new.instance_types[0], pods=()), name=new.name
            )
        for move in command.placements:
            if move.source is None:
                continue
            source, target = nodes[move.source], nodes[move.target]
            pod = next(pod for pod in source.pods if pod.name == move.pod)
            cpu, memory = pod.cpu * source.cpu / target.cpu, pod.memory * source.memory / target.memory
            nodes[move.target] = replace(target, pods=(*target.pods, replace(pod, cpu=cpu, memory=memory)))
        for name in command.nodes:
            del nodes[name]
    return tuple(nodes.values())


def _totals(nodes: tuple[DrawnNode, ...]) -> TotalsPart:
    known = [node.price_per_hour for node in nodes if node.price_per_hour is not None]
    return TotalsPart(
        nodes=len(nodes),
        pods=sum(not pod.daemon for node in nodes for pod in node.pods),
        price_per_hour=sum(known),
        unpriced_nodes=len(nodes) - len(known),
    )


def _plan(
    before: tuple[DrawnNode, ...], commands: tuple[PlannedCommand, ...], reasons: dict[str, tuple[Reason, ...]]
) -> tuple[PlanDocument, Drawing]:
    after = moved(before, commands)
    first, last = _totals(before), _totals(after)
    assert first.price_per_hour is not None
    assert last.price_per_hour is not None
    saved = first.price_per_hour - last.price_per_hour
    owner = {name: command for command in commands for name in command.nodes}
    plan = PlanDocument(
        time=NOW,
        before=first,
        after=last,
        savings=Savings(price_per_hour=saved, percent=100 * saved / first.price_per_hour),
        commands=commands,
        nodes=tuple(_verdict(node, reasons.get(node.name, ()), owner.get(node.name)) for node in before),
        unschedulable=(
            Unschedulable(
                pod="ml/train-llm-0",
                reasons=(
                    Reason(
                        "NoFit", "wants 8 nvidia.com/gpu; no NodePool offers a type with so many", "Pod ml/train-llm-0"
                    ),
                ),
            ),
        ),
        curve=_curve(first.price_per_hour, commands),
    )
    return plan, Drawing(before=before, after=after)


def _curve(price: float, commands: tuple[PlannedCommand, ...]) -> tuple[CurvePart, ...]:
    points = [CurvePart(step=0, evictions=0, price_per_hour=price)]
    for command in commands:
        price -= command.savings_per_hour or 0.0
        evictions = points[-1].evictions + len(command.placements)
        points.append(CurvePart(step=command.step, evictions=evictions, price_per_hour=price))
    return tuple(points)


def _moves(source: DrawnNode, targets: dict[str, str]) -> tuple[PlacementPart, ...]:
    """Every pod that is no daemon's goes to the node that its workload is given."""
    return tuple(
        PlacementPart(pod=pod.name, source=source.name, target=targets[pod.workload.split()[1]])
        for pod in source.pods
        if not pod.daemon
    )


def _dozen() -> dict[str, DrawnNode]:
    nodes = [
        _node(
            "ip-10-0-1-11",
            pool="general",
            instance_type="m6i.2xlarge",
            pods=[(1, "search"), (1, "cart"), (2, "cart"), (1, "prometheus"), (1, "web")],
        ),
        _node(
            "ip-10-0-1-24",
            pool="general",
            instance_type="m6i.2xlarge",
            pods=[(2, "search"), (3, "search"), (2, "web"), (3, "cart"), (1, "model")],
        ),
        _node("ip-10-0-1-37", pool="general", instance_type="m6i.xlarge", pods=[(1, "kafka"), (3, "web")]),
        _node("ip-10-0-2-18", pool="general", instance_type="m6i.xlarge", pods=[(4, "cart"), (4, "web")]),
        _node(
            "ip-10-0-2-52", pool="general", instance_type="m6i.xlarge", pods=[(5, "cart"), (5, "web"), (1, "ingress")]
        ),
        _node("ip-10-0-2-77", pool="general", instance_type="m6i.large", pods=[]),
        _node(
            "ip-10-0-3-09",
            pool="general",
            instance_type="m6i.2xlarge",
            pods=[(2, "model"), (2, "kafka"), (6, "web"), (2, "ingress")],
        ),
        _node("ip-10-0-3-41", pool="stateful", instance_type="r6i.xlarge", pods=[(0, "postgres"), (3, "kafka")]),
        _node("ip-10-0-3-66", pool="stateful", instance_type="r6i.xlarge", pods=[(1, "postgres")]),
        _node("ip-10-0-4-12", pool="spot", instance_type="c6i.xlarge", pods=[(1, "runner"), (2, "runner")]),
        _node("ip-10-0-4-13", pool="spot", instance_type="c6i.xlarge", pods=[(3, "runner")]),
        _node("ip-10-0-4-90", pool="legacy", instance_type="m6i.xlarge", pods=[(7, "web"), (8, "web")]),
    ]
    return {node.name: node for node in nodes}


def small() -> tuple[PlanDocument, Drawing]:
    """A dozen nodes, four steps, and a node of unknown price."""
    nodes = _dozen()
    nodes["ip-10-0-4-90"] = replace(nodes["ip-10-0-4-90"], price_per_hour=None)
    to_first = dict.fromkeys(("cart", "web", "ingress", "kafka"), "ip-10-0-1-11")
    commands = (
        _command(step=1, method="Emptiness", nodes=("ip-10-0-2-77",), placements=(), saved=0.096),
        _command(
            step=2,
            method="MultiNodeConsolidation",
            nodes=("ip-10-0-1-37", "ip-10-0-2-18", "ip-10-0-2-52"),
            placements=(
                *_moves(nodes["ip-10-0-1-37"], {**to_first, "kafka": "new-1"}),
                *_moves(nodes["ip-10-0-2-18"], to_first),
                *_moves(nodes["ip-10-0-2-52"], {**to_first, "ingress": "ip-10-0-3-09", "web": "new-1"}),
            ),
            saved=0.48,
            replacements=(_replacement("new-1", "m6i.large", "m6i.xlarge", "m5.xlarge"),),
            waves={"shop/cart": 2},
        ),
        _command(
            step=3,
            method="SingleNodeConsolidation",
            nodes=("ip-10-0-4-13",),
            placements=_moves(nodes["ip-10-0-4-13"], {"runner": "ip-10-0-3-09"}),
            saved=0.0595,
        ),
    )
    return _plan(tuple(nodes.values()), commands, _small_reasons())


def several() -> tuple[PlanDocument, Drawing]:
    """A dozen nodes, three of which are replaced by two in one step; and what no plan can go below."""
    nodes = _dozen()
    first, second = dict.fromkeys(("cart", "kafka"), "new-1"), dict.fromkeys(("web", "ingress"), "new-2")
    gone = ("ip-10-0-1-37", "ip-10-0-2-18", "ip-10-0-2-52")
    commands = (
        _command(
            step=1,
            method="MultiNodeConsolidation",
            nodes=gone,
            placements=tuple(move for name in gone for move in _moves(nodes[name], first | second)),
            saved=0.31,
            replacements=(_replacement("new-1", "c6i.xlarge", "m6i.xlarge"), _replacement("new-2", "m6i.large")),
        ),
    )
    plan, drawing = _plan(tuple(nodes.values()), commands, _small_reasons())
    return replace(plan, lower_bound=least()), drawing


def least() -> LowerBoundPart:
    """A lower bound with what stands in the way of a lower one."""
    return LowerBoundPart(
        price_per_hour=2.0,
        method="lp",
        distance_percent=2.1,
        blockers=(
            BlockerPart(code="PodDisruptionBudget", price_per_hour=0.1, nodes=2),
            BlockerPart(code="PodDoNotDisrupt", price_per_hour=0.62, nodes=3),
        ),
    )


def _replacement(name: str, *types: str) -> ReplacementPart:
    return ReplacementPart(
        name=name,
        node_pool="general",
        capacity_type="on-demand",
        zones=("us-east-1a", "us-east-1b"),
        instance_types=types,
        price_per_hour=TYPES[types[0]][2],
    )


def _command(
    *,
    step: int,
    method: str,
    nodes: tuple[str, ...],
    placements: tuple[PlacementPart, ...],
    saved: float,
    replacements: tuple[ReplacementPart, ...] = (),
    waves: dict[str, int] | None = None,
) -> PlannedCommand:
    return PlannedCommand(
        step=step,
        method=method,
        reason="Empty" if method == "Emptiness" else "Underutilized",
        decision="replace" if replacements else "delete",
        nodes=nodes,
        replacements=replacements,
        placements=placements,
        savings_per_hour=saved,
        disruption_cost=float(len(placements)),
        waves=waves or {},
    )


def _small_reasons() -> dict[str, tuple[Reason, ...]]:
    not_cheaper = (
        "the cheapest node that would hold its pods, m6i.2xlarge in us-east-1b, costs 0.384 $/h, "
        "not less than today's 0.384"
    )
    return {
        "ip-10-0-1-11": (Reason("NotCheaper", not_cheaper, "Node ip-10-0-1-11"),),
        "ip-10-0-1-24": (Reason("NotCheaper", not_cheaper, "Node ip-10-0-1-24"),),
        "ip-10-0-3-09": (Reason("PodDoNotDisrupt", "is marked karpenter.sh/do-not-disrupt", "Pod ml/model-7c9f-0002"),),
        "ip-10-0-3-41": (
            Reason("PdbBlocks", "PodDisruptionBudget data/postgres allows no disruption", "Pod data/postgres-0"),
            Reason("BudgetExhausted", "the budget of NodePool stateful allows 0 of 2 nodes", "NodePool stateful"),
        ),
        "ip-10-0-3-66": (
            Reason("PdbBlocks", "PodDisruptionBudget data/postgres allows no disruption", "Pod data/postgres-1"),
        ),
        "ip-10-0-4-12": (Reason("SpotToSpotDisabled", "spot to spot is off", "Node ip-10-0-4-12"),),
        "ip-10-0-4-90": (Reason("NotManaged", "no NodePool owns it", "Node ip-10-0-4-90"),),
    }


def large(size: int) -> tuple[PlanDocument, Drawing]:
    """Many nodes of 18 pods each; every tenth goes, its pods to the next one."""
    kinds, workloads = list(TYPES), list(WORKLOADS)
    before = tuple(
        replace(
            _node(
                f"ip-10-{i // 256}-{i % 256}-{i % 97}.ec2.internal",
                pool=f"pool-{i % 7}",
                instance_type="m6i.2xlarge" if i % 10 else kinds[i % 5],
                pods=(),
            ),
            pods=tuple(
                _tiny(f"{i}-{j}", workloads[(i * 7 + j * j) % len(workloads)]) for j in range(18 if i % 10 else 4)
            ),
        )
        for i in range(size)
    )
    commands = tuple(
        _command(
            step=i // 10 + 1,
            method="SingleNodeConsolidation",
            nodes=(before[i].name,),
            placements=tuple(
                PlacementPart(pod=pod.name, source=before[i].name, target=before[i + 1].name) for pod in before[i].pods
            ),
            saved=before[i].price_per_hour or 0.0,
        )
        for i in range(0, size - 1, 10)
    )
    why = Reason("NoRoom", "its pods fit on no other node, and a cheaper node would not hold them", "")
    pdb = Reason("PdbBlocks", "PodDisruptionBudget data/postgres allows no disruption", "Pod data/postgres-1")
    return _plan(before, commands, {node.name: (pdb,) if i % 3 else (why, pdb) for i, node in enumerate(before)})


def _tiny(index: str, workload: str) -> DrawnPod:
    namespace, cpu, memory = WORKLOADS[workload]
    name = f"{namespace}/{workload}-6f7c9bd8c-{index}"
    return DrawnPod(name=name, cpu=cpu / 20, memory=memory / 100, workload=f"Deployment {workload}")


def explanation() -> ExplanationDocument:
    """A node that one marked pod keeps."""
    blocked = Reason("PodDoNotDisrupt", "is marked karpenter.sh/do-not-disrupt until 14:30 UTC", "Pod shop/cart-0")
    return ExplanationDocument(
        time=NOW,
        node=ExplainedNodePart(
            name="ip-10-0-1-11",
            node_pool="general",
            instance_type="m6i.xlarge",
            zone="us-east-1a",
            capacity_type="on-demand",
            price_per_hour=0.192,
            pods=3,
            age_seconds=273_900,
        ),
        verdict="keep",
        utilisation={
            "cpu": Utilisation(requested=parse_quantity("1570m"), allocatable=parse_quantity("3920m"), ratio=0.4),
            "memory": Utilisation(requested=parse_quantity("10Gi"), allocatable=parse_quantity("14Gi"), ratio=0.714),
        },
        rules=(
            RuleResult(rule="The node is initialized", passed=True),
            RuleResult(rule="No pod forbids disruption", passed=False, reason=blocked),
        ),
        pods=(
            PodDestination(pod="shop/cart-0", target=None, reason=blocked),
            PodDestination(pod="shop/web-0", target="ip-10-0-1-24"),
            PodDestination(pod="shop/web-1", target="new-1"),
        ),
        alternative=_alternative("new-1", "m6i.large"),
        replacements=(_alternative("new-1", "m6i.large"),),
        unblock=(Unblock(condition="Pod shop/cart-0 were not marked do-not-disrupt", savings_per_hour=0.19),),
    )


def _alternative(name: str, instance_type: str) -> AlternativePart:
    return AlternativePart(
        node_pool="general",
        instance_type=instance_type,
        zone="us-east-1b",
        capacity_type="on-demand",
        price_per_hour=TYPES[instance_type][2],
        name=name,
    )


def explanation_with_several() -> ExplanationDocument:
    """A node that two smaller ones would replace."""
    parts = (_alternative("new-1", "m6i.large"), _alternative("new-2", "c6i.xlarge"))
    pods = (PodDestination(pod="shop/web-0", target="new-1"), PodDestination(pod="shop/web-1", target="new-2"))
    return replace(explanation(), verdict="replace", pods=pods, alternative=parts[0], replacements=parts, unblock=())


def stopped(plan: PlanDocument) -> PlanDocument:
    """The same plan while a person has paused a pool, and too few nodes are ready."""
    paused = StopPart(
        code="Paused", message="is paused by its annotation", object="NodePool spot", node_pool="spot", until=None
    )
    unhealthy = StopPart(
        code="ClusterUnhealthy", message="5 of 9 nodes are not ready", object="Cluster", node_pool=None, until=None
    )
    return replace(plan, stops=(paused, unhealthy))


def paced(plan: PlanDocument) -> PlanDocument:
    """The same plan under rates that let a step go every hour."""
    commands = [replace(command, begins=NOW + timedelta(hours=command.step - 1)) for command in plan.commands]
    return replace(plan, commands=tuple(commands))


def grouped(plan: PlanDocument) -> PlanDocument:
    """The plan with node groups of long names, and with who pays."""
    group = NodeGroupPart(
        name="web-workers-with-quite-a-long-name-2026",
        title="EKS managed node group",
        label="eks.amazonaws.com/nodegroup",
        instance_types=("m6i.xlarge", "m6i.2xlarge"),
        zones=("us-east-1a", "us-east-1b"),
        capacity_types=("on-demand",),
        minimum=1,
        maximum=10,
        sizes_from="--groups",
        before=12,
        after=7,
        price_before=2.304,
        price_after=1.344,
        removed=("a", "b"),
        added=0,
    )
    cost = CostPart(pods=12, price_per_hour=1.2345, unpriced=1)
    entry = CostGroupPart(name="a-team-with-a-name-that-is-longer-than-a-phone-is-wide", before=cost, after=cost)
    costs = CostsPart(by="label", label="team", groups=(entry,), headroom=entry, system=entry, idle=entry, total=entry)
    return replace(plan, groups=(group, replace(group, name="batch")), costs=(costs,))
