"""The versions of the programs that live tests and benchmarks run."""

import re
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2] / "scripts" / "kubernetes"


def pinned() -> dict[str, str]:
    """By program, the version that is built from here."""
    texts = {module: (MODULES / module / "go.mod").read_text("utf-8") for module in ("karpenter", "kubernetes", "kwok")}
    return {module: re.findall(rf"k8s\.io/{module} (v\S+)", text)[0] for module, text in texts.items()}
