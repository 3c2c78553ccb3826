"""The custom resource definitions that Karpool installs, as YAML documents."""

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Final

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OWNER: Final = "karpool"
_FILES: Final = {
    "nodepools.karpenter.sh": "nodepools.yaml",
    "nodeclaims.karpenter.sh": "nodeclaims.yaml",
    "nodeoverlays.karpenter.sh": "nodeoverlays.yaml",
    "kwoknodeclasses.karpenter.kwok.sh": "kwoknodeclasses.yaml",
    "capacitybuffers.autoscaling.x-k8s.io": "capacitybuffers.yaml",
}
NAMES: Final = tuple(_FILES)
SHARED: Final = ("capacitybuffers.autoscaling.x-k8s.io",)
"""Definitions that are the same whoever installs them; where one is there already, it does."""


def definition(name: str) -> str:
    return files(__name__).joinpath(_FILES[name]).read_text(encoding="utf-8")


def definitions(but: Collection[str] = ()) -> str:
    """All definitions, without some."""
    return "---\n".join(definition(name) for name in NAMES if name not in but)


def is_ours(labels: Mapping[str, str]) -> bool:
    """Whether an installed definition with these labels is Karpool's."""
    return labels.get(MANAGED_BY) == OWNER
