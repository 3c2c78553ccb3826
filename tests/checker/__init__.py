"""An independent checker of placements, from Kubernetes' rules: slow, simple, knowing nothing of the engine.

It imports the model and nothing else of ours. The state of a cluster is machines, pods bound to them, and what machines
could still be opened; `violations` follows placements one by one, `could_place` says where a pod would be legal.
"""

from tests.checker.facts import (
    BoundPod,
    Machine,
    Option,
    Placement,
    State,
    machine_of,
    narrowed,
    state_of,
    template_of,
    with_pod_bound,
)
from tests.checker.verdicts import could_place, problems, violations

__all__ = [
    "BoundPod",
    "Machine",
    "Option",
    "Placement",
    "State",
    "could_place",
    "machine_of",
    "narrowed",
    "problems",
    "state_of",
    "template_of",
    "violations",
    "with_pod_bound",
]
