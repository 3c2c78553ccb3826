"""Fields of a workload's pods that Kubernetes does not have: most likely they are misspelt."""

from collections.abc import Iterator
from typing import Any, Final

from karpool.model.pod import PodSpec
from karpool.wire.fields import Path, unknown_field, unknown_fields
from karpool.wire.problems import Flaw

# fmt: off
_CONTAINER: Final = [
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe",
    "readinessProbe", "resizePolicy", "restartPolicyRules", "securityContext", "startupProbe", "stdin",
    "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts",
    "workingDir",
]
_IGNORED: Final = {
    "": [
        "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy",
        "enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID",
        "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "preemptionPolicy",
        "readinessGates", "restartPolicy", "runtimeClassName", "schedulingGates", "schedulingGroup",
        "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN",
        "shareProcessNamespace", "subdomain", "workloadRef",
    ],
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ports": ["name"],
    "tolerations": ["tolerationSeconds"],
}
# fmt: on
"""Fields that Kubernetes knows and decisions do not need, by the field that holds them."""


def unknown_pod_fields(written: Any, at: Path) -> Iterator[Flaw]:
    """Unknown fields of a pod's spec; those of volumes are not checked."""
    for path, known in unknown_fields(PodSpec, written):
        *parents, name = (part for part in path if isinstance(part, str))
        ignored = _IGNORED.get(parents[-1] if parents else "", [])
        if path[0] != "volumes" and name not in ignored:
            yield unknown_field((*at, *path), (*known, *ignored))
