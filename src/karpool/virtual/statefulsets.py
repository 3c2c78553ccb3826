"""StatefulSets: pods with numbers, one after the other, recreated under the same name once they are gone."""

from karpool.model.pod import Pod
from karpool.virtual.owners import Owner, ready, reference

REVISION = "controller-revision-hash"


class StatefulSetOwner(Owner):
    """Keeps the pods 0 to n-1, each created when those before it are ready."""

    revision = 1

    def deploy(self) -> None:
        """Begin to replace pods, the last one first."""
        self.revision += 1
        self.soon()

    def reconcile(self) -> None:
        """Take one step: create the next missing pod, remove the last surplus one, or replace an old one."""
        for number in range(self.wanted):
            pod = self._pod(number)
            if pod is None:
                self._create(number)
                return
            if not pod.active or not ready(pod):
                return
        surplus = [pod for pod in self.pods.values() if _number(pod) >= self.wanted]
        old = [pod for pod in self.pods.values() if pod.metadata.labels[REVISION] != str(self.revision)]
        chosen = max(surplus or old, key=_number, default=None)
        if chosen is not None:
            self.api.delete_pod(chosen.key)

    def _pod(self, number: int) -> Pod | None:
        return self.world.store.pods.get(f"{self.workload.namespace}/{self.workload.name}-{number}")

    def _create(self, number: int) -> None:
        labels = {**self.labels, REVISION: str(self.revision)}
        name = f"{self.workload.name}-{number}"
        self.create(name, reference("StatefulSet", self.workload.name), labels=labels)


def _number(pod: Pod) -> int:
    return int(pod.name.rpartition("-")[2])
