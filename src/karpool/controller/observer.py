"""What others may be told of the controller's decisions: the base of every observer, which does nothing."""

from collections.abc import Sequence

from karpool.disruption.command import Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.execution.actions import Action
from karpool.model.reasons import Reason
from karpool.provisioning.provision import ProvisioningResult


class DecisionObserver:
    """Is told of decisions as they are made; override what you want to be told of."""

    def pass_started(self) -> None:
        """A decision pass or a round of provisioning starts."""

    def pass_finished(self, decision_pass: DecisionPass, commands: Sequence[Command]) -> None:
        """A pass decided on these commands; only during this call can `decision_pass` be asked for reasons."""

    def command_dropped(self, command: Command, reason: Reason) -> None:
        """A command was no longer valid when it was to start."""

    def command_started(self, command: Command) -> None:
        """A command starts."""

    def actions_requested(self, actions: Sequence[Action]) -> None:
        """Commands and terminations in progress request these actions."""

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        """A round of provisioning found places for pending pods, or reasons why there are none."""
