"""The cluster of files that a scenario starts with: its node groups, and what to say of what the files lack."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace as changed

from karpool.catalog.instance_types import Catalog
from karpool.cli.inputs.cluster_source import as_validated, input_notices, read_cluster_of
from karpool.cli.options.catalog_options import CatalogOpener, of_kwok
from karpool.cli.options.group_options import group_notices, idle_prices, sizes_in
from karpool.cluster.node_groups import GroupOptions, with_group_shapes, with_groups
from karpool.model.group_sizes import Sizes
from karpool.model.managers import ManagerKind, manager_of
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.report.formatting import count
from karpool.virtual.initial_cluster import on_machines
from karpool.virtual.replays.demand import read_demand
from karpool.virtual.scenario import Scenario
from karpool.wire.problems import one_line


class InitialCluster(NamedTuple):
    """Where the cluster is with which a scenario starts, and what the user says of its groups."""

    files: tuple[str, ...]
    recording: str
    groups: GroupOptions

    def catalog(self, opener: CatalogOpener) -> Catalog:
        """The catalogue for it; the opener's own if there is no cluster."""
        if not self.files and not self.recording:
            return opener()
        if self.recording:
            return _catalog_of(read_demand(Path(self.recording)).objects, opener, self.groups)
        return _catalog_of(load(self.files, stdin=sys.stdin.buffer).objects, opener, self.groups)

    def notices(self, opener: CatalogOpener) -> Iterator[str]:
        """What `karpool plan` would say of the same files, one line each; files without any pods are refused."""
        if not self.files:
            return
        read = read_cluster_of(load(self.files, stdin=sys.stdin.buffer))
        objects, _ = on_machines(read.objects)
        objects = changed(objects, node_pools=tuple(map(as_validated, objects.node_pools)))
        complete = opener.complete(kwok=of_kwok(objects.node_claims, objects.node_pools))
        yield from read.notices
        catalog, grouped = _catalog_of(objects, opener, self.groups), with_groups(objects, self.groups)
        for text in (
            *input_notices(objects, catalog, opener, complete=complete),
            *group_notices(grouped, self.groups),
            *idle_prices(grouped, catalog, self.groups),
            *_unmanaged(objects, self.groups.pool_label),
        ):
            yield one_line(text)


def groups_of(scenario: Scenario, beside: Path, named: GroupOptions) -> GroupOptions:
    """What is said of node groups: on the command line, or in the scenario."""
    own: Mapping[str, Sizes] = sizes_in(str(beside / scenario.groups)) if scenario.groups else {}
    return replace(named, pool_label=named.pool_label or scenario.pool_label or None, sizes=named.sizes or own)


def _catalog_of(objects: Objects, opener: CatalogOpener, groups: GroupOptions) -> Catalog:
    catalog = opener.for_cluster(objects.nodes, objects.node_claims, objects.node_pools)
    return with_group_shapes(catalog, with_groups(objects, groups))


def _unmanaged(objects: Objects, pool_label: str | None) -> Iterator[str]:
    """The nodes that stay because nobody is known who could remove them."""
    claimed = {claim.status.node_name for claim in objects.node_claims}
    lost = [
        node.name
        for node in objects.nodes
        if manager_of(node, claimed=node.name in claimed, pool_label=pool_label).kind is ManagerKind.NOBODY
    ]
    if lost:
        yield (
            f"{count(len(lost), 'node')}, such as {lost[0]}, {'is' if len(lost) == 1 else 'are'} in no NodePool and in"
            " no node group that is known, and never removed; --pool-label names a label for groups"
        )
