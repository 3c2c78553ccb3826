"""The chart as helm renders it."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "karpool"
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.34.0"
Json = dict[str, Any]


def program() -> Path:
    """The program that `make test` has built; without it the test is skipped."""
    run = subprocess.run(  # noqa: S603 - our own script
        [ROOT / "scripts" / "ensure-helm", "--no-build"], capture_output=True, text=True, check=False
    )
    if run.returncode:
        pytest.skip(f"NOT TESTED: the Helm chart. {run.stderr.strip()}")
    return Path(run.stdout.strip())


def helm(*arguments: str | Path, values: Json | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm; what it says of linked files is not what it is asked for."""
    command = [program(), *arguments, *(("--values", "-") if values is not None else ())]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)  # noqa: S603
    said = [line for line in done.stderr.splitlines() if "found symbolic link" not in line]
    return subprocess.CompletedProcess(command, done.returncode, done.stdout, "\n".join(said))


def template(
    values: Json, *, release: str, namespace: str, version: str = KUBERNETES
) -> subprocess.CompletedProcess[str]:
    return helm(
        "template", release, CHART, "--namespace", namespace, "--kube-version", version, values={"global": {}} | values
    )


def render(values: Json, *, release: str = "karpool", namespace: str = "karpool") -> list[Json]:
    """The objects that a release with these values has."""
    done = template(values, release=release, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of(documents: Iterable[Json], *kinds: str) -> list[Json]:
    return [document for document in documents if document["kind"] in kinds]


def deployment(documents: Iterable[Json], component: str) -> Json:
    (found,) = (
        document
        for document in of(documents, "Deployment")
        if document["metadata"]["labels"]["app.kubernetes.io/component"] == component
    )
    return found


def shipped(*names: str) -> list[Json]:
    """What files of deploy/ say, without the namespace, which helm makes by itself."""
    documents = [document for name in names for document in yaml.safe_load_all((DEPLOY / name).read_text())]
    return [document for document in documents if document["kind"] != "Namespace"]


def unlabelled(documents: Iterable[Json]) -> dict[str, Json]:
    """Objects by kind, namespace and name, without labels."""
    found = {}
    for document in documents:
        metadata = {key: value for key, value in document["metadata"].items() if key != "labels"}
        key = f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
        assert key not in found
        found[key] = document | {"metadata": metadata}
    return found
