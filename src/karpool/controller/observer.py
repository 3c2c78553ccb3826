"""What others may want to know of the controller's decisions."""

from collections.abc import Sequence

from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.disruption.fleet_search.target import Answer
from karpool.execution.actions import Action
from karpool.execution.state import RolledBack, WaitOver
from karpool.execution.tickets import Ticket
from karpool.model.reasons import Reason
from karpool.provisioning.provision import ProvisioningResult


class DecisionObserver:
    """Is called with decisions as they are made; override what you want to hear of."""

    def pass_started(self) -> None:
        """A disruption pass, or a provisioning pass, starts."""

    def wants_reasons(self, commands: Sequence[Command]) -> bool:
        """Whether a pass that found these commands should also say why every other node stays."""
        del commands
        return False

    def wants_bound(self, commands: Sequence[Command]) -> bool:
        """Whether a pass that found these commands should also tell the problem of a lower bound."""
        del commands
        return False

    def pass_finished(self, decision: Decision) -> None:
        """A disruption pass decided; reasons are there if any observer wanted them."""

    def search_finished(self, answer: Answer | None, seconds: float) -> None:
        """A global search has ended after so many seconds; None if it failed."""

    def command_dropped(self, command: Command, reason: Reason, in_a_row: int) -> None:
        """A command was no longer valid when it was to start; how often in a row that was so for its nodes."""

    def command_started(self, command: Command, identity: str) -> None:
        """A command starts, with this id on its NodeClaims."""

    def command_failed(self, command: RolledBack) -> None:
        """A command that had started is given up."""

    def command_completed(self, ticket: Ticket) -> None:
        """The last node of a command is gone; its replacements run."""

    def wait_over(self, wait: WaitOver) -> None:
        """A drain goes on though pods that left before are not ready elsewhere."""

    def actions_requested(self, actions: Sequence[Action]) -> None:
        """Commands and drains under way ask for these actions."""

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        """A provisioning pass decided."""
