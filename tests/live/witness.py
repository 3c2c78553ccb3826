"""A witness of a cluster that two controllers disrupt: whether budgets held all the time, and who began what."""

from tests.live.invariants import Seen, Watching, is_healthy
from tests.live.trial import Trial

from karpool.execution.tickets import ticket_of
from karpool.live import resources as r
from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget


class Witness(Watching):
    """Looks at every change of pods, NodeClaims and Nodes, from the moment on at which all pods are healthy."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self.broken: list[str] = []
        self.looks = 0
        """How often healthy pods were counted."""
        self.least: dict[str, int] = {}
        """By PodDisruptionBudget: how many more healthy pods than it wants there were, at least."""
        self.begun: list[str] = []
        """Ids of Karpool's commands, in the order in which their first tickets were seen."""
        self.disrupted_by_karpenter: set[str] = set()
        """Nodes that had Karpenter's taint."""
        self._pods: Seen[Pod] = Seen(self._count)
        self._budgets: Seen[PodDisruptionBudget] = Seen(self._count)
        self._claims: Seen[NodeClaim] = Seen(self._look_at_claims)
        self._nodes: Seen[Node] = Seen(self._look_at_nodes)
        self.follow(r.PODS, self._pods)
        self.follow(r.POD_DISRUPTION_BUDGETS, self._budgets)
        self.follow(r.NODE_CLAIMS, self._claims)
        self.follow(r.NODES, self._nodes)

    def _count(self) -> None:
        """What each budget wants is in its status; what there is, is counted here and not believed."""
        for budget in self._budgets.objects.values():
            covered = [pod for pod in self._pods.objects.values() if budget.matches("default", pod.metadata.labels)]
            spare = sum(map(is_healthy, covered)) - budget.status.desired_healthy
            if budget.key not in self.least and spare <= 0:
                continue  # not all pods have been up yet
            self.looks += 1
            self.least[budget.key] = min(spare, self.least.get(budget.key, spare))
            if spare < 0:
                self.broken.append(f"{-spare} pods fewer are healthy than {budget.key} wants")

    def _look_at_claims(self) -> None:
        tickets = [ticket_of(claim) for claim in self._claims.objects.values()]
        ids = [ticket.id for ticket in tickets if ticket is not None]
        self.begun += [identity for identity in dict.fromkeys(ids) if identity not in self.begun]

    def _look_at_nodes(self) -> None:
        for node in self._nodes.objects.values():
            if any(taint.key == DISRUPTED_TAINT for taint in node.spec.taints):
                self.disrupted_by_karpenter.add(node.name)
