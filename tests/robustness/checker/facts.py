"""What objects say, as Kubernetes and the documentation of Karpenter and Karpool define it."""

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tests.robustness.checker.records import Json

NODEPOOL: Final = "karpenter.sh/nodepool"
INITIALIZED: Final = "karpenter.sh/initialized"
DISRUPTED: Final = "karpenter.sh/disrupted"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
TICKET: Final = "karpool.sh/command"
REPLACEMENT: Final = "karpool.sh/replacement-for"
FAILED_COMMAND: Final = "karpool.sh/failed-command"
FAILED_LAUNCH: Final = "karpool.sh/failed-launch"
HARM: Final = "karpool.sh/harm"
LEDGER: Final = "karpool.sh/disruptions"
MAX_EVICTIONS: Final = "karpool.sh/max-evictions-per-hour"
COMPACTION: Final = "estafette.io/node-compactor-state"
ZONE: Final = "topology.kubernetes.io/zone"
PAUSED: Final = "karpool.sh/paused"
PAUSE: Final = "karpool-pause"
"""The ConfigMap that pauses everything."""
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def meta(obj: Json) -> Json:
    found: Json = obj.get("metadata", {})
    return found


def name(obj: Json) -> str:
    return str(meta(obj).get("name", ""))


def key(obj: Json) -> str:
    namespace = meta(obj).get("namespace", "")
    return f"{namespace}/{name(obj)}" if namespace else name(obj)


def same(one: Json, other: Json) -> bool:
    """Whether two states are of one object, and not of one that came after it under its name."""
    return bool(meta(one).get("uid") == meta(other).get("uid"))


def annotation(obj: Json, text: str) -> str | None:
    value = meta(obj).get("annotations", {}).get(text)
    return None if value is None else str(value)


def label(obj: Json, text: str) -> str:
    return str(meta(obj).get("labels", {}).get(text, ""))


def deleted(obj: Json | None) -> bool:
    """Whether an object is gone, or told to go."""
    return obj is None or bool(meta(obj).get("deletionTimestamp"))


def condition(obj: Json, kind: str) -> str:
    """The status of a condition, which is Unknown where it is left out; nothing if there is no such condition."""
    found = (
        entry.get("status", "Unknown") for entry in obj.get("status", {}).get("conditions", ()) if entry["type"] == kind
    )
    return str(next(found, ""))


def seconds(text: str) -> float | None:
    """A duration such as 1h30m in seconds; None if it is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def created(obj: Json) -> datetime:
    return moment(meta(obj)["creationTimestamp"])


# -- pods --------------------------------------------------------------------------------------------------------------


def on_node(pods: Iterable[Json], node: str) -> list[Json]:
    return [pod for pod in pods if pod.get("spec", {}).get("nodeName") == node]


def finished(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def active(pod: Json) -> bool:
    return not finished(pod) and not deleted(pod)


def healthy(pod: Json) -> bool:
    return active(pod) and condition(pod, "Ready") == "True"


def of_daemon_set(pod: Json) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in meta(pod).get("ownerReferences", ()))


def of_kubelet(pod: Json) -> bool:
    return annotation(pod, "kubernetes.io/config.mirror") is not None


def tolerates_disruption(pod: Json) -> bool:
    """Whether a pod tolerates the taint of nodes that go, and stays on them to the end."""
    for toleration in pod.get("spec", {}).get("tolerations", ()):
        named = toleration.get("key", "")
        everything = not named and toleration.get("operator") == "Exists"
        if (everything or named == DISRUPTED) and toleration.get("effect", "NoSchedule") in ("", "NoSchedule"):
            return True
    return False


def protected(pod: Json, now: datetime) -> bool:
    """Whether do-not-disrupt holds now: always, or for so long from the pod's start."""
    value = annotation(pod, DO_NOT_DISRUPT)
    if value is None or not active(pod):
        return False
    if value == "true":
        return True
    length, started = seconds(value), pod.get("status", {}).get("startTime")
    if length is None:
        return False
    return started is None or now < moment(started) + timedelta(seconds=length)


def selects(selector: Json | None, pod: Json) -> bool:
    """Whether a label selector is about a pod; nothing at all selects nothing, an empty one everything."""
    if selector is None:
        return False
    labels = meta(pod).get("labels", {})
    wanted = selector.get("matchLabels", {}).items()
    return all(labels.get(text) == value for text, value in wanted) and all(
        _matches(expression, labels) for expression in selector.get("matchExpressions", ())
    )


def covers(budget: Json, pod: Json) -> bool:
    """Whether a PodDisruptionBudget is about a pod."""
    together = meta(budget).get("namespace") == meta(pod).get("namespace")
    return together and selects(budget.get("spec", {}).get("selector"), pod)


def _matches(expression: Json, labels: Json) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", ())
    answers = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return answers[expression["operator"]]


# -- nodes -------------------------------------------------------------------------------------------------------------


def tainted(node: Json) -> bool:
    return any(taint.get("key") == DISRUPTED for taint in node.get("spec", {}).get("taints", ()))


def ticket(claim: Json | None) -> Json | None:
    """What a command wrote on a NodeClaim that it is about."""
    text = None if claim is None else annotation(claim, TICKET)
    found: Json | None = None if text is None else json.loads(text)
    return found


def node_of(claim: Json) -> str:
    return str(claim.get("status", {}).get("nodeName", ""))


def expired(claim: Json, now: datetime, grace: float = 0.0) -> bool:
    """Whether a NodeClaim is as old as it may become, which nothing protects from; `grace`: or nearly so."""
    most = seconds(str(claim.get("spec", {}).get("expireAfter", "")))
    age = now - moment(meta(claim)["creationTimestamp"])
    return most is not None and age >= timedelta(seconds=most - grace)


def pool_of(obj: Json) -> str:
    return label(obj, NODEPOOL)


def cools_down(claim: Json, now: datetime) -> bool:
    """Whether a NodeClaim remembers a failure whose waiting time may not be over."""
    if annotation(claim, FAILED_LAUNCH) is not None:
        return True
    text = annotation(claim, FAILED_COMMAND)
    if text is None:
        return False
    known = json.loads(text)
    doublings = max(known.get("tries", 1), known.get("poolTries", 1)) - 1
    return now < moment(known["at"]) + timedelta(seconds=min(3600.0, 180.0 * 2**doublings))


# -- what controllers write down ---------------------------------------------------------------------------------------


def ledger(pool: Json | None) -> dict[str, Json]:
    """What a NodePool says about commands, by their ids."""
    text = None if pool is None else annotation(pool, LEDGER)
    entries: list[Json] = [] if text is None else json.loads(text)
    return {str(entry["command"]): entry for entry in entries}


def compaction(node: Json | None) -> Json:
    """What the compactor wrote on a node."""
    text = None if node is None else annotation(node, COMPACTION)
    found: Json = {} if text is None else json.loads(text)
    return found


def in_compaction(node: Json | None) -> bool:
    return bool(compaction(node).get("scaleDownInProgress"))


def cordoned(node: Json) -> bool:
    return bool(node.get("spec", {}).get("unschedulable"))


def controller_of(pod: Json) -> str:
    """What makes a pod again; nothing if nobody does."""
    owners = [owner for owner in meta(pod).get("ownerReferences", ()) if owner.get("controller")]
    return "".join(f"{meta(pod).get('namespace')}/{owner['kind']}/{owner['name']}" for owner in owners[:1])


def crashes(pod: Json) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return any(status.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff" for status in statuses)
