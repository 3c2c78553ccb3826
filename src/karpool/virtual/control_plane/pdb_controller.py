"""The disruption controller of Kubernetes: keeps the status of PodDisruptionBudgets, and decides on evictions."""

from collections import Counter
from collections.abc import Callable
from enum import IntEnum

from msgspec.structs import replace

from karpool.controller.store import ClusterStore
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.model.pod import Pod
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget
from karpool.wire.objects import is_true

ScaleTarget = Callable[[Pod], str]
DesiredReplicas = Callable[[str], int | None]
_Entry = tuple[tuple[str, ...], bool, str]
_MOST_KNOWN = 10_000
"""How many different labels are remembered."""


class EvictionStatus(IntEnum):
    CREATED = 201
    NOT_FOUND = 404
    TOO_MANY_REQUESTS = 429
    SEVERAL_BUDGETS = 500


class _Tally:
    """The pods of one budget: how many there are, how many are healthy, and what scales them."""

    def __init__(self) -> None:
        self.pods = 0
        self.healthy = 0
        self.expected = -1
        self.scale_targets: Counter[str] = Counter()
        self.keys: dict[str, None] = {}


class PdbController:
    """Updates the status of budgets after every change of a pod.

    `scale_target` names what scales a pod, and `desired_replicas` says how many pods that wants.
    """

    def __init__(self, store: ClusterStore, scale_target: ScaleTarget, desired_replicas: DesiredReplicas) -> None:
        self.store = store
        self._scale_target = scale_target
        self._desired_replicas = desired_replicas
        self._matching: dict[tuple[str, int], tuple[dict[str, str], tuple[str, ...]]] = {}
        self._counted: dict[str, _Entry] = {}
        self._limits = StatusPdbLimits(self)
        self._rules: tuple[object, ...] | None = None
        self.reread()
        store.pods.watch(self._pod_changed)
        store.pdbs.watch(self._budget_changed)

    def reread(self) -> None:
        """Take in that budgets were created, changed or deleted."""
        self._budgets = PdbLimits(self.store.pdbs.listed())
        self._rules = None
        self._matching.clear()
        self._counted.clear()
        self._tallies: dict[str, _Tally] = {pdb.key: _Tally() for pdb in self.store.pdbs}
        for pod in self.store.pods:
            self._pod_changed(None, pod)
        for key in self._tallies:
            self._write(key)

    @property
    def rules(self) -> tuple[object, ...]:
        """What budgets say whatever their status is, and which of them are known to cover pods."""
        if self._rules is None:
            self._rules = self._budgets.rules, tuple((pdb.key, pdb.spec) for pdb in self.store.pdbs)
        return self._rules

    def covering(self, pod: Pod) -> tuple[str, ...]:
        """The keys of the budgets that cover a pod, by name; pods that share their labels share the answer."""
        labels = pod.metadata.labels
        name = (pod.metadata.namespace, id(labels))
        matching = self._matching.get(name)
        if matching is None:
            if len(self._matching) >= _MOST_KNOWN:
                self._matching.clear()
            # The labels are kept, too, so that no others ever get their id.
            matching = self._matching[name] = labels, tuple(pdb.key for pdb in self._budgets.matching(pod))
        return matching[1]

    def _budget_changed(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if old is None or new is None or old.spec is not new.spec:
            self._rules = None

    # -- counting ------------------------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if not self._tallies:
            return
        pod = new if new is not None else old
        if pod is None:
            return
        key = pod.key
        before, after = self._counted.pop(key, None), self._entry(new)
        if after is not None:
            self._counted[key] = after
        if before == after:
            return
        for entry, change in ((before, -1), (after, 1)):
            if entry is not None:
                self._count(entry, key, change)
        for budget in sorted({*(before[0] if before else ()), *(after[0] if after else ())}):
            self._write(budget)

    def _entry(self, pod: Pod | None) -> _Entry | None:
        keys = () if pod is None or pod.terminal else self.covering(pod)
        return (keys, _healthy(pod), self._scale_target(pod)) if pod is not None and keys else None

    def _count(self, entry: _Entry, pod: str, change: int) -> None:
        keys, healthy, scale_target = entry
        for key in keys:
            tally = self._tallies[key]
            tally.pods += change
            tally.healthy += change * healthy
            tally.scale_targets[scale_target] += change
            if change > 0:
                tally.keys[pod] = None
            else:
                tally.keys.pop(pod, None)

    def pdbs(self) -> PdbLimits:
        return self._limits

    def scaled(self, scale_target: str) -> None:
        """Take in that a scale target wants another number of pods."""
        for key, tally in self._tallies.items():
            if tally.scale_targets.get(scale_target) and self._expected(tally) != tally.expected:
                self._write(key)

    def _write(self, key: str) -> None:
        pdb = self.store.pdbs.get(key)
        if pdb is None:
            return
        tally = self._tallies[key]
        tally.expected = self._expected(tally)
        expected, desired = self._expected_and_desired(pdb, tally)
        status = BudgetStatus(
            disruptions_allowed=max(0, tally.healthy - desired) if expected > 0 else 0,
            current_healthy=tally.healthy,
            desired_healthy=desired,
            expected_pods=expected,
        )
        if status != pdb.status:
            self.store.pdbs.put(replace(pdb, status=status))

    def _expected_and_desired(self, pdb: PodDisruptionBudget, tally: _Tally) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy; percentages are of the desired replicas."""
        least, most = pdb.spec.min_available, pdb.spec.max_unavailable
        if most is not None:
            return tally.expected, max(0, tally.expected - _amount(most, tally.expected))
        if isinstance(least, str) and least.endswith("%"):
            return tally.expected, _amount(least, tally.expected)
        return tally.pods, _amount(least or 0, tally.pods)

    def _expected(self, tally: _Tally) -> int:
        total = 0
        for scale_target, count in tally.scale_targets.items():
            if count:
                replicas = self._desired_replicas(scale_target)
                total += count if replicas is None else replicas
        return total

    # -- evictions -----------------------------------------------------------------------------------------------

    def eviction_status(self, pod: Pod) -> EvictionStatus:
        """What the Eviction API answers; pods that do not run may always go."""
        if pod.status.phase in ("Pending", "Succeeded", "Failed", "") or pod.terminating:
            return EvictionStatus.CREATED
        keys = self.covering(pod) if self._tallies else ()
        if len(keys) > 1:
            return EvictionStatus.SEVERAL_BUDGETS
        for pdb in (self.store.pdbs.get(key) for key in keys):
            if pdb is not None and not _allows(pdb, pod):
                return EvictionStatus.TOO_MANY_REQUESTS
        return EvictionStatus.CREATED


class StatusPdbLimits(PdbLimits):
    """Budgets with their current status, matched by the cache of the controller."""

    def __init__(self, controller: PdbController) -> None:
        super().__init__(pdb for pdb in controller.store.pdbs if pdb.unreadable)
        self._controller = controller

    @property
    def rules(self) -> tuple[object, ...]:
        return self._controller.rules

    def readable(self, key: str) -> PodDisruptionBudget | None:
        pdb = self._controller.store.pdbs.get(key)
        return None if pdb is None or pdb.unreadable else pdb

    def matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        pdbs = self._controller.store.pdbs
        return [pdb for key in self._controller.covering(pod) if (pdb := pdbs.get(key)) is not None]


def _allows(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    status = pdb.status
    if not _healthy(pod):
        always = pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        if always or (status.current_healthy >= status.desired_healthy and status.desired_healthy > 0):
            return True
    return status.disruptions_allowed > 0


def _healthy(pod: Pod) -> bool:
    return not pod.terminating and is_true(pod.status.conditions, "Ready")


def _amount(written: int | str, whole: int) -> int:
    """A number, or a percentage of the whole, rounded up as Kubernetes does for budgets."""
    if isinstance(written, str) and written.endswith("%"):
        return -(-int(written[:-1]) * whole // 100)
    return int(written)
