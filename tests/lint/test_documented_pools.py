"""NodePools that pages show name instance types that there are."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from karpool.catalog.sources import open_catalog
from karpool.disruption.settings import DisruptionSettings
from karpool.lint import no_known_type, unknown_types
from karpool.lint.cluster import LintedCluster
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.wire.yaml_documents import yaml_documents

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = re.compile(r"^( *)```ya?ml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def is_pool(shown: Any) -> bool:
    if not isinstance(shown, dict) or shown.get("kind", "NodePool") != "NodePool":
        return False
    spec = shown.get("spec")
    return isinstance(spec, dict) and "template" in spec


def shown_pools() -> Iterator[tuple[str, NodePool]]:
    """The pools of every page; what a page leaves out of a manifest for brevity is not needed here."""
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        for indent, block in BLOCK.findall(page.read_text()):
            text = re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
            for shown in filter(is_pool, yaml_documents(text.encode())):
                name = f"{page.name}-{shown['metadata']['name']}"
                yield name, msgspec.convert({"metadata": {"name": name}, "spec": shown["spec"]}, NodePool, strict=False)


POOLS: Final = dict(shown_pools())


def test_there_are_pools_on_pages() -> None:
    assert len(POOLS) >= 2


@pytest.mark.parametrize("name", POOLS)
def test_pools_on_pages_name_types_that_there_are(name: str) -> None:
    objects = Objects(node_pools=(POOLS[name],))
    cluster = LintedCluster(objects, open_catalog(), datetime(2026, 11, 16, tzinfo=UTC), DisruptionSettings())
    assert [*no_known_type.find(cluster), *unknown_types.find(cluster)] == []
