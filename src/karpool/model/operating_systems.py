"""Windows and Linux: which nodes run which, and what only asks for one of them.

kube-scheduler sends a pod without a rule about its system to any node, and the kubelet of the other system cannot run
it. Clouds taint few Windows nodes, so a pod that does not ask for Windows is planned onto none.
"""

from collections.abc import Mapping
from typing import Final

from karpool.model.labels import OS, WINDOWS_BUILD
from karpool.model.requirements import Requirements

WINDOWS: Final = "windows"
_LINUX: Final = "linux"
NOT_FOR_WINDOWS: Final = "runs Windows, which the pod does not ask for"


def runs_windows(labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels, under their current names, runs Windows."""
    return labels.get(OS) == WINDOWS


def needs_windows(requirements: Requirements) -> bool:
    """Whether nothing but Windows can be meant: by a pod that asks for a node, or by a pool that makes one."""
    system, build = requirements.get(OS), requirements.get(WINDOWS_BUILD)
    if system is not None and not system.absent and system.has(WINDOWS) and not system.has(_LINUX):
        return True
    return build is not None and not build.absent and build.some_value
