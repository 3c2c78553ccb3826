"""DaemonSets: what they will take of every node they run on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from karpool.cluster.constraints import TOLERATE_PREFER_NO_SCHEDULE, Port, host_ports
from karpool.cluster.groups import labels_satisfy
from karpool.model.pod import Pod, PodSpec
from karpool.model.requests import effective_requests
from karpool.model.requirements import Requirements
from karpool.model.scheduling import Taint, Toleration, untolerated
from karpool.model.workloads import DaemonSet
from karpool.wire.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Daemon:
    """The pod a DaemonSet puts on a node: what it takes and which nodes it selects."""

    key: str
    requests: Mapping[str, Quantity]
    ports: tuple[Port, ...]
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]

    def runs_on(self, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> bool:
        """Whether the daemon runs on a node with these labels and taints."""
        return self.tolerates(taints) and any(labels_satisfy(labels, terms) for terms in self.alternatives)

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether the daemon tolerates taints; PreferNoSchedule never stops a daemon."""
        return untolerated(taints, (*self.tolerations, TOLERATE_PREFER_NO_SCHEDULE)) is None


class DaemonIndex:
    """One daemon per DaemonSet, as its newest live pod has it, else as its template does.

    LimitRanges and webhooks change what pods request, so the template alone promises room that is not there. A
    DaemonSet that is known only by its pods counts too, for the same reason.
    """

    def __init__(self, daemon_sets: Iterable[DaemonSet] = (), pods: Iterable[Pod] = ()) -> None:
        self._sets = {entry.key: entry for entry in daemon_sets}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._newest: dict[str, Pod] = {}
        self._made_of: dict[str, Pod | None] = {}
        self._daemons: dict[str, Daemon] = {}
        self._listed: tuple[Daemon, ...] | None = None
        for pod in pods:
            if pod.is_daemon:
                self._put(pod)
        self._renew((*self._sets, *(self._pods.keys() - self._sets.keys())))

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All daemons; the same tuple until one changes."""
        if self._listed is None:
            others = sorted(self._daemons.keys() - self._sets.keys())
            self._listed = tuple(self._daemons[key] for key in (*self._sets, *others))
        return self._listed

    def set_daemon_set(self, key: str, entry: DaemonSet | None) -> bool:
        """Take note of a DaemonSet that is new, has changed, or is gone; whether a daemon changed."""
        if entry is None:
            self._sets.pop(key, None)
        else:
            self._sets[key] = entry
        self._made_of.pop(key, None)
        return self._renew((key,))

    def change_pod(self, old: Pod | None, new: Pod | None) -> bool:
        """Take note of a pod that is new, has changed, or is gone; whether a daemon changed."""
        if not ((old is not None and old.is_daemon) or (new is not None and new.is_daemon)):
            return False
        keys = set[str]()
        for pod in (old, new):
            if pod is not None:
                keys.update(_owners(pod))
        if old is not None:
            for key in _owners(old):
                self._pods.get(key, {}).pop(old.key, None)
                if key in self._newest and self._newest[key].key == old.key:
                    del self._newest[key]
        if new is not None:
            self._put(new)
        return self._renew(keys)

    def _put(self, pod: Pod) -> None:
        if not pod.active:
            return
        for key in _owners(pod):
            pods = self._pods.setdefault(key, {})
            newest = self._newest.get(key)
            if (newest is None and not pods) or (newest is not None and _age_key(pod) >= _age_key(newest)):
                self._newest[key] = pod
            pods[pod.key] = pod

    def _renew(self, keys: Iterable[str]) -> bool:
        changed = False
        for key in keys:
            if not self._pods.get(key):
                self._pods.pop(key, None)
            newest = self._newest_pod(key)
            if key in self._made_of and self._made_of[key] is newest:
                continue
            self._made_of[key] = newest
            daemon = self._daemon(key, newest)
            if daemon == self._daemons.get(key):
                continue
            changed = True
            if daemon is None:
                del self._daemons[key], self._made_of[key]
            else:
                self._daemons[key] = daemon
        if changed:
            self._listed = None
        return changed

    def _newest_pod(self, key: str) -> Pod | None:
        if key not in self._newest and key in self._pods:
            self._newest[key] = max(self._pods[key].values(), key=_age_key)
        return self._newest.get(key)

    def _daemon(self, key: str, newest: Pod | None) -> Daemon | None:
        if key in self._sets:
            template = self._sets[key].spec.template.spec
            return _daemon(key, template, newest or Pod(spec=template))
        return None if newest is None else _daemon(key, newest.spec, newest)


def daemons(daemon_sets: Iterable[DaemonSet], pods: Iterable[Pod]) -> tuple[Daemon, ...]:
    """One daemon per DaemonSet, also per one that is known only by its pods."""
    return DaemonIndex(daemon_sets, pods).daemons


def _owners(pod: Pod) -> list[str]:
    namespace = pod.metadata.namespace
    names = [owner.name for owner in pod.metadata.owner_references if owner.kind == "DaemonSet"]
    return [f"{namespace}/{name}" if namespace else name for name in names]


def _daemon(key: str, template: PodSpec, pod: Pod) -> Daemon:
    selector = Requirements.of_labels(template.node_selector)
    affinity = template.affinity.node_affinity if template.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    # The controller pins each pod to its node by a field; what is left says which nodes the DaemonSet selects.
    return Daemon(
        key=key,
        requests=effective_requests(pod),
        ports=host_ports(pod),
        alternatives=tuple(dict.fromkeys(selector.intersect(term.label_requirements) for term in terms)) or (selector,),
        tolerations=pod.spec.tolerations,
    )


def _age_key(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, pod.metadata.uid or pod.key)
