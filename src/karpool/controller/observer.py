"""What others may want to know of the controller's decisions: the base of every observer, which knows nothing."""

from collections.abc import Sequence

from karpool.disruption.command import Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.execution.actions import Action
from karpool.model.reasons import Reason
from karpool.provisioning.provision import ProvisioningResult


class DecisionObserver:
    """Is told of decisions as they are made; override what you want to hear of."""

    def looking(self) -> None:
        """A pass, or a look at pods that wait, begins."""

    def looked(self, look: DecisionPass, commands: Sequence[Command]) -> None:
        """A pass was made, and found these commands; only during this call can `look` be asked for reasons."""

    def dropped(self, command: Command, reason: Reason) -> None:
        """A command no longer stood when it was to begin."""

    def began(self, command: Command) -> None:
        """A command begins."""

    def acts(self, actions: Sequence[Action]) -> None:
        """Commands and departures under way ask for these actions."""

    def provisioned(self, found: ProvisioningResult) -> None:
        """Pods that wait were looked at."""
