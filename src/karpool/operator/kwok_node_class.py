"""KWOKNodeClasses: how instances of the provider kwok behave, and whether they can be used."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from karpool.kube.client import Client
from karpool.kube.errors import ConflictError, NotFoundError, NotLeadingError
from karpool.kube.resources import Resource
from karpool.kube.store import Store
from karpool.live.patches import timestamp
from karpool.model.nodepool import NodeClassRef
from karpool.operator.pool_status import NODE_CLASS_READY, READY
from karpool.provisioning.shortages import OfferingKey
from karpool.wire.duration import Duration, parse_duration
from karpool.wire.objects import Condition, Object, Wire, condition

LAUNCH_DELAY: Final = "kwok.karpool.sh/launch-delay"
TERMINATION_DELAY: Final = "kwok.karpool.sh/termination-delay"
SHORTAGES: Final = "kwok.karpool.sh/shortages"
FAILURES: Final = "kwok.karpool.sh/failures"


class KwokNodeClassSpec(Wire):
    node_registration_delay: Duration | None = None


class KwokNodeClassStatus(Wire):
    conditions: tuple[Condition, ...] = ()


class KwokNodeClass(Object):
    """How instances behave; a value that cannot be read counts as none."""

    spec: KwokNodeClassSpec = KwokNodeClassSpec()
    status: KwokNodeClassStatus = KwokNodeClassStatus()

    @property
    def registration_delay(self) -> float:
        delay = self.spec.node_registration_delay
        return 0.0 if delay is None or delay.delta is None else delay.delta.total_seconds()

    def delay(self, annotation: str) -> float:
        """The seconds that an annotation asks for."""
        try:
            length = parse_duration(self.metadata.annotations.get(annotation, "0s")).delta
        except ValueError:
            return 0.0
        return 0.0 if length is None else length.total_seconds()

    @property
    def failures(self) -> float:
        """The ratio of launches that fail."""
        try:
            return min(1.0, max(0.0, float(self.metadata.annotations.get(FAILURES, "0"))))
        except ValueError:
            return 0.0

    def is_short(self, key: OfferingKey) -> bool:
        """Whether an offering matches one of the patterns of `type/zone/capacity type` that are not available."""
        patterns = self.metadata.annotations.get(SHORTAGES, "").split(",")
        return any(fnmatchcase("/".join(key), pattern.strip()) for pattern in patterns)


KWOK_NODE_CLASSES: Final = Resource(
    "karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", "KWOKNodeClass", namespaced=False, type=KwokNodeClass
)


def readiness(ref: NodeClassRef, node_class: KwokNodeClass | None) -> Condition:
    """What a pool or a claim says of its node class; one that says nothing of itself can be used."""
    if node_class is None:
        return Condition(NODE_CLASS_READY, "False", "NodeClassNotFound", f"there is no {ref.kind} {ref.name}")
    if node_class.terminating:
        message = f"{ref.kind} {ref.name} is being deleted"
        return Condition(NODE_CLASS_READY, "False", "NodeClassTerminating", message)
    own = condition(node_class.status.conditions, READY)
    if own is not None and own.status == "False":
        message = own.message or f"{ref.kind} {ref.name} is not ready"
        return Condition(NODE_CLASS_READY, "False", own.reason or "NodeClassNotReady", message)
    return Condition(NODE_CLASS_READY, "True", NODE_CLASS_READY)


class NodeClassStatus:
    """Writes into node classes that they are ready; what they say already is left as it is."""

    def __init__(self, client: Client, classes: Store[KwokNodeClass], clock: Callable[[], datetime]) -> None:
        self._client = client
        self._classes = classes
        self._clock = clock

    async def reconcile(self) -> None:
        for node_class in self._classes.listed():
            if not node_class.terminating and condition(node_class.status.conditions, READY) is None:
                await self._write(node_class)

    async def _write(self, node_class: KwokNodeClass) -> None:
        ready = {
            "type": READY,
            "status": "True",
            "reason": READY,
            "message": "",
            "lastTransitionTime": timestamp(self._clock()),
            "observedGeneration": node_class.metadata.generation,
        }
        # Whoever changed it since, or wrote a condition of its own, is seen at the next call.
        with suppress(ConflictError, NotFoundError, NotLeadingError):
            await self._client.merge_patch(
                KWOK_NODE_CLASSES,
                node_class.name,
                {"status": {"conditions": [*_written(node_class), ready]}},
                subresource="status",
                resource_version=node_class.metadata.resource_version,
            )


def _written(node_class: KwokNodeClass) -> list[dict[str, object]]:
    return [
        {
            "type": entry.type,
            "status": entry.status,
            "reason": entry.reason,
            "message": entry.message,
            **({"lastTransitionTime": timestamp(entry.last_transition_time)} if entry.last_transition_time else {}),
        }
        for entry in node_class.status.conditions
    ]
