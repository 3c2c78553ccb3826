"""A plan as one self-contained HTML page."""

from collections.abc import Iterable
from html import escape
from typing import Any, Final

from karpool.disruption.reasons import clock
from karpool.model.reasons import Reason
from karpool.report.costs.costs_html import costs_html
from karpool.report.formatting import amount
from karpool.report.groups.group_words import drain_words, what_it_is
from karpool.report.html import about, render_page
from karpool.report.plans.curve_plot import curve_plot
from karpool.report.plans.document import Drawing, DrawnNode, DrawnPod, NodeGroupPart, PlanDocument, PlannedCommand
from karpool.report.plans.plan_words import stop_words, summary_words
from karpool.report.price_words import prices_words

_SCRIPTS: Final = ("words.js", "names.js", "model.js", "tooltip.js", "bars.js", "steps.js", "reasons.js", "page.js")
_MIB: Final = 2**20


def plan_page(plan: PlanDocument, drawing: Drawing) -> str:
    data = _PageData(plan, drawing).build()
    summary = _groups(plan) + _summary(plan) + "".join(map(costs_html, plan.costs))
    return render_page(
        "page.html",
        "page.css",
        _SCRIPTS,
        data,
        title=escape(": ".join(filter(None, ("Karpool plan", drawing.cluster)))),
        about=about(drawing.cluster, prices_words(plan.prices)),
        brakes=_brakes(plan),
        summary=summary,
    )


def _brakes(plan: PlanDocument) -> str:
    """What brakes hold, and what the input lacks, above all else; nothing if neither is so."""
    return _alert("Brakes", "brakes", stop_words(plan)) + _alert("Warnings", "brakes mild", plan.warnings)


def _alert(label: str, kind: str, sentences: Iterable[str]) -> str:
    words = "".join(f"<p>{escape(text)}</p>" for text in sentences)
    return f'<section class="card {kind}" role="alert" aria-label="{label}">{words}</section>' if words else ""


def _groups(plan: PlanDocument) -> str:
    """What becomes of node groups; nothing where there are none."""
    if not plan.groups:
        return ""
    rows = "".join(_group_row(group) for group in plan.groups)
    return (
        '<section class="card groups" aria-labelledby="groups-title"><div><h2 id="groups-title">Node groups</h2>'
        f'<div class="wide"><table>{rows}</table></div><p>{escape(drain_words(plan.drains))}</p></div></section>'
    )


def _group_row(group: NodeGroupPart) -> str:
    cells = (
        f"{group.before:,} → {group.after:,} nodes",
        f"{amount(group.price_before)} → {amount(group.price_after)} $/h",
        escape(what_it_is(group)),
    )
    return f'<tr><th scope="row">{escape(group.name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _summary(plan: PlanDocument) -> str:
    """How near the plan comes to the least possible, and the price against evictions; nothing if neither is known."""
    words = "".join(f"<p>{escape(text)}</p>" for text in summary_words(plan))
    plot = curve_plot(plan.curve, plan.lower_bound)
    if not words and not plot:
        return ""
    return (
        '<section class="card curve" aria-labelledby="curve-title">'
        f'<div><h2 id="curve-title">Price in $/h against evictions</h2>{words}</div>{plot}</section>'
    )


class _PageData:
    """The page's data, with every pod and every reason stored once, so that pages of large clusters stay small."""

    def __init__(self, plan: PlanDocument, drawing: Drawing) -> None:
        self._plan = plan
        self._before = {node.name: node for node in drawing.before}
        self._after = {node.name: node for node in drawing.after}
        self._pods: dict[tuple[Any, ...], int] = {}
        self._reasons: dict[Reason, int] = {}
        self._workloads: dict[str, int] = {}
        self._nodes: dict[str, int] = {}

    def build(self) -> dict[str, Any]:
        nodes = [*self._todays_nodes(), *self._new_nodes()]
        commands = [self._command(command) for command in self._plan.commands]
        plan = self._plan
        return {
            "time": plan.time,
            "before": plan.before,
            "after": plan.after,
            "savings": plan.savings,
            "nodes": nodes,
            "commands": commands,
            "unschedulable": [
                {"pod": entry.pod, "reasons": self._reason_ids(entry.reasons)} for entry in plan.unschedulable
            ],
            "pods": list(self._pods),
            "workloads": list(self._workloads),
            "reasons": [(reason.code, reason.message, reason.object) for reason in self._reasons],
        }

    def _todays_nodes(self) -> Iterable[dict[str, Any]]:
        for verdict in self._plan.nodes:
            yield {
                **self._bar(verdict.name),
                "pool": verdict.node_pool,
                "type": verdict.instance_type,
                "zone": verdict.zone,
                "capacity": verdict.capacity_type,
                "price": verdict.price_per_hour,
                "verdict": verdict.verdict,
                "gone": verdict.step,
                "reasons": self._reason_ids(verdict.reasons),
            }

    def _new_nodes(self) -> Iterable[dict[str, Any]]:
        gone = {name: command.step for command in self._plan.commands for name in command.nodes}
        for command in self._plan.commands:
            for new in command.replacements:
                yield {
                    **self._bar(new.name),
                    "pool": new.node_pool,
                    "type": new.instance_types[0] if new.instance_types else "",
                    "zone": ", ".join(new.zones),
                    "capacity": new.capacity_type,
                    "price": new.price_per_hour,
                    "verdict": "new",
                    "came": command.step,
                    "gone": gone.get(new.name),
                    "reasons": [],
                }

    def _bar(self, name: str) -> dict[str, Any]:
        """A node's size and its pods before and after; `after` is left out where nothing changed."""
        self._nodes[name] = len(self._nodes)
        before, after = self._before.get(name), self._after.get(name)
        size = before or after
        bar: dict[str, Any] = {
            "name": name,
            "cpu": size.cpu if size else None,
            "memory": size.memory / _MIB if size else None,
            "before": self._pod_ids(before),
        }
        now = self._pod_ids(after)
        return bar if now == bar["before"] else {**bar, "after": now}

    def _pod_ids(self, node: DrawnNode | None) -> list[int] | None:
        return None if node is None else [self._pod_id(node, pod) for pod in node.pods]

    def _pod_id(self, node: DrawnNode, pod: DrawnPod) -> int:
        workload = self._workloads.setdefault(pod.workload, len(self._workloads))
        cores, mebibytes = round(pod.cpu * node.cpu, 4), round(pod.memory * node.memory / _MIB, 2)
        return self._pods.setdefault((pod.name, cores, mebibytes, workload, int(pod.daemon)), len(self._pods))

    def _reason_ids(self, reasons: Iterable[Reason]) -> list[int]:
        return [self._reasons.setdefault(reason, len(self._reasons)) for reason in reasons]

    def _command(self, command: PlannedCommand) -> dict[str, Any]:
        return {
            "step": command.step,
            "method": command.method,
            "reason": command.reason,
            "decision": command.decision,
            "saved": command.savings_per_hour,
            "cost": command.disruption_cost,
            "begins": None if command.begins is None else clock(command.begins, self._plan.time),
            "waves": command.waves,
            "nodes": [self._node_id(name) for name in command.nodes],
            "replacements": [
                {"node": self._node_id(new.name), "types": new.instance_types, "price": new.price_per_hour}
                for new in command.replacements
            ],
            "moves": [
                (move.pod, None if move.source is None else self._node_id(move.source), self._node_id(move.target))
                for move in command.placements
            ],
        }

    def _node_id(self, name: str) -> int | str:
        """The node's place in the list, or its name if the plan does not list it."""
        return self._nodes.get(name, name)
