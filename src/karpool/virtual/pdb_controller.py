"""PodDisruptionBudgets: their status, kept by counting changes, and what the Eviction API makes of it."""

from collections import Counter
from collections.abc import Callable, Collection
from enum import StrEnum

from msgspec.structs import replace

from karpool.controller.store import ClusterStore
from karpool.disruption.pdbs import PdbLimits
from karpool.model.pod import Pod
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget
from karpool.wire.objects import is_true

ControllerOf = Callable[[Pod], str]
Scale = Callable[[str], int | None]
_Entry = tuple[tuple[str, ...], bool, str]
_MOST_KNOWN = 10_000
"""How many different labels are remembered."""


class EvictionVerdict(StrEnum):
    """What budgets say to an eviction."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    SEVERAL = "several"


class _Tally:
    """The pods of one budget: how many there are, how many are healthy, and whose they are."""

    def __init__(self) -> None:
        self.pods = 0
        self.healthy = 0
        self.expected = -1
        self.controllers: Counter[str] = Counter()
        self.keys: dict[str, None] = {}


class PdbController:
    """Keeps the status of every budget right after every change of a pod.

    `controller_of` names what scales a pod, and `scale` says how many pods that wants.
    """

    def __init__(self, store: ClusterStore, controller_of: ControllerOf, scale: Scale) -> None:
        self.store = store
        self._controller_of = controller_of
        self._scale = scale
        self._budgets = PdbLimits(store.pdbs.listed())
        self._matching: dict[tuple[str, int], tuple[dict[str, str], tuple[str, ...]]] = {}
        self._tallies: dict[str, _Tally] = {pdb.key: _Tally() for pdb in store.pdbs}
        self._counted: dict[str, _Entry] = {}
        self._known = StatusPdbLimits(self)
        store.pods.watch(self._pod)
        for pod in store.pods:
            self._pod(None, pod)
        for key in self._tallies:
            self._write(key)

    def covering(self, pod: Pod) -> tuple[str, ...]:
        """The keys of the budgets that cover a pod, by name; pods that share their labels share the answer."""
        labels = pod.metadata.labels
        name = (pod.metadata.namespace, id(labels))
        found = self._matching.get(name)
        if found is None:
            if len(self._matching) >= _MOST_KNOWN:
                self._matching.clear()
            # The labels are kept, too, so that no others ever get their id.
            found = self._matching[name] = labels, tuple(pdb.key for pdb in self._budgets.matching(pod))
        return found[1]

    # -- counting ------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
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
        return (keys, _healthy(pod), self._controller_of(pod)) if pod is not None and keys else None

    def _count(self, entry: _Entry, pod: str, change: int) -> None:
        keys, healthy, controller = entry
        for key in keys:
            tally = self._tallies[key]
            tally.pods += change
            tally.healthy += change * healthy
            tally.controllers[controller] += change
            if change > 0:
                tally.keys[pod] = None
            else:
                tally.keys.pop(pod, None)

    def covered(self, budgets: Collection[str]) -> list[str]:
        """The keys of the pods that any of these budgets covers."""
        return [key for budget in sorted(budgets) for key in self._tallies[budget].keys]

    def pdbs(self) -> PdbLimits:
        """The budgets as they stand at any moment."""
        return self._known

    def scaled(self, controller: str) -> None:
        """Take note that an owner of pods wants another number of them."""
        for key, tally in self._tallies.items():
            if tally.controllers[controller] and self._expected(tally) != tally.expected:
                self._write(key)

    def _write(self, key: str) -> None:
        pdb = self.store.pdbs.get(key)
        if pdb is None:
            return
        tally = self._tallies[key]
        tally.expected = self._expected(tally)
        expected, desired = self._wanted(pdb, tally)
        status = BudgetStatus(
            disruptions_allowed=max(0, tally.healthy - desired) if expected > 0 else 0,
            current_healthy=tally.healthy,
            desired_healthy=desired,
            expected_pods=expected,
        )
        if status != pdb.status:
            self.store.pdbs.put(replace(pdb, status=status))

    def _wanted(self, pdb: PodDisruptionBudget, tally: _Tally) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy; shares are of what their owners want."""
        least, most = pdb.spec.min_available, pdb.spec.max_unavailable
        if most is not None:
            return tally.expected, max(0, tally.expected - _amount(most, tally.expected))
        if isinstance(least, str) and least.endswith("%"):
            return tally.expected, _amount(least, tally.expected)
        return tally.pods, _amount(least or 0, tally.pods)

    def _expected(self, tally: _Tally) -> int:
        total = 0
        for controller, count in tally.controllers.items():
            if count:
                wanted = self._scale(controller)
                total += count if wanted is None else wanted
        return total

    # -- evictions -----------------------------------------------------------------------------------------------

    def verdict(self, pod: Pod) -> EvictionVerdict:
        """What the Eviction API would say; pods that do not run yet, or any more, may always go."""
        if pod.status.phase in ("Pending", "Succeeded", "Failed", "") or pod.terminating:
            return EvictionVerdict.ALLOWED
        keys = self.covering(pod) if self._tallies else ()
        if len(keys) > 1:
            return EvictionVerdict.SEVERAL
        for pdb in (self.store.pdbs.get(key) for key in keys):
            if pdb is not None and not _lets_go(pdb, pod):
                return EvictionVerdict.REFUSED
        return EvictionVerdict.ALLOWED


class StatusPdbLimits(PdbLimits):
    """The budgets as they stand at any moment, found by what the watchman knows already."""

    def __init__(self, watchman: PdbController) -> None:
        super().__init__(())
        self._watchman = watchman

    def matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod, by name."""
        held = self._watchman.store.pdbs
        return [pdb for key in self._watchman.covering(pod) if (pdb := held.get(key)) is not None]


def _lets_go(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    status = pdb.status
    if not _healthy(pod):
        always = pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        if always or (status.current_healthy >= status.desired_healthy and status.desired_healthy > 0):
            return True
    return status.disruptions_allowed > 0


def _healthy(pod: Pod) -> bool:
    return not pod.terminating and is_true(pod.status.conditions, "Ready")


def _amount(written: int | str, whole: int) -> int:
    """A number, or a share of the whole, rounded up as Kubernetes does for budgets."""
    if isinstance(written, str) and written.endswith("%"):
        return -(-int(written[:-1]) * whole // 100)
    return int(written)
