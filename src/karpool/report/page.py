"""A plan as one self-contained HTML page: styles, script and data inside, no network.

Everything that came from the cluster is data: it travels as JSON in a script element that no browser executes, and the
page's script writes it as text only. A content security policy allows this page's own style and script by their hash.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from string import Template
from typing import Any, Final

import msgspec

from karpool.model.reasons import Reason
from karpool.report.document import Drawing, DrawnNode, DrawnPod, PlanDocument, PlannedCommand

_SCRIPTS: Final = ("words.js", "model.js", "tooltip.js", "bars.js", "steps.js", "reasons.js", "page.js")
_MIB: Final = 2**20


def plan_page(plan: PlanDocument, drawing: Drawing) -> str:
    """The page, ready to be written to a file."""
    style, script = asset("page.css"), "\n".join(asset(name) for name in _SCRIPTS)
    policy = f"default-src 'none'; style-src {script_hash(style)}; script-src {script_hash(script)}; base-uri 'none'"
    return Template(asset("page.html")).substitute(
        policy=policy, style=style, script=script, data=embeddable(_PageData(plan, drawing).build())
    )


@cache
def asset(name: str) -> str:
    """The text of one of the package's own files."""
    return (resources.files("karpool.report") / "assets" / name).read_text(encoding="utf-8")


def script_hash(source: str) -> str:
    """A style or a script as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def embeddable(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


class _PageData:
    """Collects what the page needs with every pod and every reason stored once, so that large clusters stay small."""

    def __init__(self, plan: PlanDocument, drawing: Drawing) -> None:
        self._plan = plan
        self._before = {node.name: node for node in drawing.before}
        self._after = {node.name: node for node in drawing.after}
        self._pods: dict[tuple[Any, ...], int] = {}
        self._reasons: dict[Reason, int] = {}
        self._workloads: dict[str, int] = {}
        self._nodes: dict[str, int] = {}

    def build(self) -> dict[str, Any]:
        """The page's data; model.js is the other end."""
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
