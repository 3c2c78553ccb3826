"""The custom resource definitions that Karpool installs, as YAML documents."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OWNER: Final = "karpool"
_FILES: Final = {
    "nodepools.karpenter.sh": "nodepools.yaml",
    "nodeclaims.karpenter.sh": "nodeclaims.yaml",
    "kwoknodeclasses.karpenter.kwok.sh": "kwoknodeclasses.yaml",
}
NAMES: Final = tuple(_FILES)


def definition(name: str) -> str:
    return files(__name__).joinpath(_FILES[name]).read_text(encoding="utf-8")


def definitions() -> str:
    return "---\n".join(definition(name) for name in NAMES)


def is_ours(labels: Mapping[str, str]) -> bool:
    """Whether an installed definition with these labels is Karpool's."""
    return labels.get(MANAGED_BY) == OWNER
