"""DaemonSets: what they will take of every node they run on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from karpool.cluster.constraints import TOLERATE_WISHES, Port, host_ports
from karpool.cluster.groups import labels_satisfy
from karpool.model.pod import Pod, PodSpec
from karpool.model.requests import effective_requests
from karpool.model.requirements import Requirements
from karpool.model.scheduling import Taint, Toleration, untolerated
from karpool.model.workloads import DaemonSet
from karpool.wire.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Daemon:
    """The pod a DaemonSet puts on a node: what it takes and which nodes it wants."""

    key: str
    requests: Mapping[str, Quantity]
    ports: tuple[Port, ...]
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]

    def runs_on(self, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> bool:
        """Whether the daemon runs on a node with these labels and taints."""
        return self.tolerates(taints) and any(labels_satisfy(labels, wanted) for wanted in self.alternatives)

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether the daemon puts up with taints; wishes to stay away never stop a daemon."""
        return untolerated(taints, (*self.tolerations, TOLERATE_WISHES)) is None


def daemons(daemon_sets: Iterable[DaemonSet], pods: Iterable[Pod]) -> tuple[Daemon, ...]:
    """One representative pod per DaemonSet: its newest live pod, else one made from the template.

    A DaemonSet that only its pods tell of counts too: leaving it out would promise room that is not there.
    """
    live: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        for owner in pod.metadata.owner_references:
            if owner.kind == "DaemonSet" and pod.active:
                live[pod.metadata.namespace, owner.name].append(pod)
    known = [_daemon(entry.key, entry.spec.template.spec, live.pop(_place(entry), [])) for entry in daemon_sets]
    unknown = [
        _daemon(f"{namespace}/{name}", max(found, key=_age_key).spec, found)
        for (namespace, name), found in sorted(live.items())
    ]
    return (*known, *unknown)


def _place(entry: DaemonSet) -> tuple[str, str]:
    return entry.metadata.namespace, entry.name


def _daemon(key: str, template: PodSpec, live: list[Pod]) -> Daemon:
    pod = max(live, key=_age_key, default=Pod(spec=template))
    selector = Requirements.of_labels(template.node_selector)
    affinity = template.affinity.node_affinity if template.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    # The controller pins each pod to its node by a field; what is left says which nodes the DaemonSet wants.
    return Daemon(
        key=key,
        requests=effective_requests(pod),
        ports=host_ports(pod),
        alternatives=tuple(dict.fromkeys(selector.intersect(term.requirements) for term in terms)) or (selector,),
        tolerations=pod.spec.tolerations,
    )


def _age_key(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, pod.metadata.uid or pod.key)
