"""An independent checker of placements, from Kubernetes' rules: slow, simple, knowing nothing of the engine.

It imports the model and nothing else of ours. The state of a cluster is machines, pods in seats, and what machines
could still be opened; `violations` follows placements one by one, `could_place` says where a pod would be legal.
"""

from tests.checker.facts import (
    Machine,
    Option,
    Placement,
    Seat,
    State,
    machine_of,
    narrowed,
    seated,
    state_of,
    template_of,
)
from tests.checker.verdicts import could_place, problems, violations

__all__ = [
    "Machine",
    "Option",
    "Placement",
    "Seat",
    "State",
    "could_place",
    "machine_of",
    "narrowed",
    "problems",
    "seated",
    "state_of",
    "template_of",
    "violations",
]
