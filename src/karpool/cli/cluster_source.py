"""A cluster to decide about, from files."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from karpool.catalog.instance_types import Catalog
from karpool.cli.catalog_options import Opener
from karpool.cli.decision_options import Choices
from karpool.disruption.settings import Settings
from karpool.model.loading import load
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.rules.pools import controller_flaws
from karpool.model.wire import Condition


@dataclass(frozen=True, slots=True)
class Cluster:
    """Objects, the catalogue for them, and the settings that go with it."""

    objects: Objects
    catalog: Catalog
    settings: Settings


def cluster_from_files(files: Sequence[str], opener: Opener, choices: Choices) -> Cluster:
    """Read a cluster; pools that a controller would not accept supply no nodes."""
    objects = load(files, stdin=sys.stdin.buffer).objects
    catalog = opener.for_cluster(objects.nodes, objects.node_claims)
    pools = tuple(_as_a_controller_sees(pool) for pool in objects.node_pools)
    settings = replace(choices.settings, complete_catalog=opener.complete)
    return Cluster(replace(objects, node_pools=pools), catalog, settings)


def _as_a_controller_sees(pool: NodePool) -> NodePool:
    """A pool whose template breaks a rule is never ready; budgets that cannot be read stop it by themselves."""
    broken = [flaw for flaw in controller_flaws(pool) if flaw.field.startswith("spec.template")]
    if not broken:
        return pool
    others = tuple(entry for entry in pool.status.conditions if entry.type != "Ready")
    said = Condition(type="Ready", status="False", reason="ValidationFailed", message=broken[0].message)
    return changed(pool, status=changed(pool.status, conditions=(*others, said)))
