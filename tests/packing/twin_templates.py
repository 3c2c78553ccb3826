"""Pools as templates for the plain twin: which types can be had of a pool, and which daemons run on them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.cluster.daemons import Daemon
from karpool.model.nodepool import NodePool
from karpool.model.requirements import Requirements
from karpool.packing import templates
from karpool.packing.templates import NodeTemplate


@dataclass(frozen=True)
class Template(NodeTemplate):
    """A pool's template, and the catalogue that its types come from."""

    catalog: Catalog

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """The types that meet the pool's requirements and can be had now."""
        return tuple(entry for entry in self.catalog.types if offered(entry, self.requirements, self.catalog))


def templates_of(pools: Iterable[NodePool], catalog: Catalog, seed: int) -> list[Template]:
    """Templates of the pools that can create nodes, in the order in which they are tried."""
    return [
        Template(pool=entry.pool, requirements=entry.requirements, taints=entry.taints, catalog=catalog)
        for entry in templates.templates(pools, seed)
    ]


def offered(entry: InstanceType, requirements: Requirements, catalog: Catalog) -> bool:
    """Whether a type meets requirements and can be had now."""
    return entry.requirements.meets(requirements) and any(
        can_be_had(offering, requirements, catalog) for offering in entry.offerings
    )


def can_be_had(offering: Offering, requirements: Requirements, catalog: Catalog) -> bool:
    """Whether an offering can be had now under requirements."""
    return offering.launchable and requirements.conflict(offering.requirements, undefined=catalog.well_known) is None


def daemon_on(daemon: Daemon, template: Template, entry: InstanceType, catalog: Catalog) -> bool:
    """Whether a daemon would run on a node of this template and type."""
    return daemon.tolerates(template.taints) and any(
        template.requirements.conflict(wanted, undefined=catalog.well_known) is None
        and entry.requirements.meets(wanted)
        for wanted in daemon.alternatives
    )
