"""How long, and how much memory, does loading a large list of pods take, as `kubectl get pods -o json` prints it.

python benchmarks/loading.py --mb 100 --json
"""

import argparse
import io
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from karpool.model.reading.loading import load


def pod(number: int) -> dict[str, object]:
    """A pod with all that real ones carry: environment, probes, volumes, managed fields, statuses."""
    name = f"web-{number % 400}-7d9c5b6f4-{number:06x}"
    owner = {
        "apiVersion": "apps/v1",
        "controller": True,
        "kind": "ReplicaSet",
        "name": name[:-7],
        "uid": f"r-{number % 400}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": f"{number:064x}"},
            "creationTimestamp": "2026-11-01T08:15:30Z",
            "generateName": name[:-6],
            "labels": {"app": f"web-{number % 400}", "pod-template-hash": "7d9c5b6f4", "team": f"team-{number % 30}"},
            "managedFields": [_managed(manager) for manager in ("kube-controller-manager", "kubelet")],
            "name": name,
            "namespace": f"team-{number % 30}",
            "ownerReferences": [owner],
            "resourceVersion": str(1_000_000 + number),
            "uid": f"{number:08x}-1111-2222-3333-444444444444",
        },
        "spec": {
            "containers": [_container("app", "500m", "512Mi"), _container("proxy", "50m", "64Mi")],
            "nodeName": f"node-{number % 5000}",
            "schedulerName": "default-scheduler",
            "serviceAccountName": f"web-{number % 400}",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            "volumes": [{"name": "config", "configMap": {"name": f"web-{number % 400}"}}],
        },
        "status": {
            "conditions": [
                {"lastTransitionTime": "2026-11-01T08:15:40Z", "status": "True", "type": kind}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.0.1",
            "phase": "Running",
            "startTime": "2026-11-01T08:15:31Z",
        },
    }


def _managed(manager: str) -> dict[str, object]:
    fields = {f"f:field-{index}": {"f:value": {}} for index in range(24)}
    return {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": fields}, "manager": manager}


def _container(name: str, cpu: str, memory: str) -> dict[str, object]:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:1.2.3",
        "args": ["--config=/etc/config.yaml", "--listen=:8080"],
        "env": [{"name": f"SETTING_{index}", "value": f"some value of setting {index}"} for index in range(15)],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"limits": {"memory": memory}, "requests": {"cpu": cpu, "memory": memory}},
        "volumeMounts": [{"mountPath": "/etc/config", "name": "config", "readOnly": True}],
    }


def _chunks(size: int) -> Iterator[str]:
    written = number = 0
    yield '{"apiVersion": "v1", "items": ['
    while written < size:
        text = ("" if number == 0 else ",\n") + json.dumps(pod(number), indent=1)
        written += len(text)
        number += 1
        yield text
    yield '], "kind": "List", "metadata": {"resourceVersion": ""}}\n'


def measure(megabytes: float) -> dict[str, float]:
    """Write such a list, load it, and say what that took."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "pods.json")
        with path.open("w") as file:
            file.writelines(_chunks(int(megabytes * 1e6)))
        size = path.stat().st_size / 1e6
        start = time.perf_counter()
        loaded = load([str(path)], stdin=io.BytesIO())
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return {
        "MB": round(size, 1),
        "pods": len(loaded.objects.pods),
        "seconds": round(seconds, 3),
        "peakMemoryMB": round(peak),
        "mbPerSecond": round(size / seconds, 1),
    }


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=10.0, help="size of the list, in MB (default 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = measure(arguments.mb)
    if arguments.json:
        print(json.dumps({"benchmark": "loading", **result}))
    else:
        print("  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
