"""A cluster to decide about, from files or live."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as changed

from karpool.catalog.instance_types import Catalog
from karpool.catalog.notices import idle_discounts, unlisted_zones, unmet_labels, unpriced_regions
from karpool.catalog.overlays import with_overlays
from karpool.cli.errors import say
from karpool.cli.inputs.live_cluster import Purpose, context_name, read_live
from karpool.cli.options.catalog_options import CatalogOpener, of_kwok
from karpool.cli.options.decision_options import Choices
from karpool.cli.options.group_options import group_notices, idle_prices
from karpool.cli.options.input_options import ClusterInput
from karpool.cli.progress import ReportProgress
from karpool.cluster.node_groups import GroupOptions, with_group_shapes, with_groups
from karpool.disruption.candidates.costs import unreadable_costs_notice
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.stray_annotations import stray_settings
from karpool.model.default_spread import with_default_spread
from karpool.model.labels import PAUSE_MAP
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.reading.loading import UNKNOWN_KIND, Loaded, load
from karpool.model.rules.pools import controller_flaws
from karpool.report.formatting import count, names_of
from karpool.wire.objects import Condition
from karpool.wire.problems import InputError, one_line
from karpool.wire.sources import STDIN

if TYPE_CHECKING:
    from karpool.disruption.context import DecisionContext


_MOST_SLIPS: Final = 5
_NODELESS: Final = "there are no Nodes in the input, so there is nothing to decide"
STANDARD_INPUT: Final = "standard input"


class ReadCluster(NamedTuple):
    objects: Objects
    notices: tuple[str, ...] = ()
    """What the input lacks, so that the answer may mislead."""
    loaded: Loaded | None = None
    """Where files had the objects."""


@dataclass(frozen=True, slots=True)
class LoadedCluster:
    objects: Objects
    catalog: Catalog
    settings: DisruptionSettings
    warnings: tuple[str, ...] = ()
    """What was said about the input on standard error."""
    loaded: Loaded | None = None
    """Where files had the objects."""

    def context(self, choices: Choices) -> "DecisionContext":
        # The engine takes half a second to load: bad input and --help should not wait for it.
        from karpool.disruption.plan import context_of

        return context_of(self.objects, self.catalog, now=choices.now, settings=self.settings, options=choices.options)


def cluster_name(source: ClusterInput) -> str:
    """What people call what is read: the kube context, or the files."""
    if not source.files:
        return context_name(source.kube)
    return names_of([STANDARD_INPUT if file == STDIN else Path(file).resolve().name for file in source.files])


def read_cluster(
    source: ClusterInput,
    report: ReportProgress,
    purpose: Purpose = Purpose.DECIDE,
    *,
    pause_namespace: str | None = None,
    devices: bool = False,
) -> ReadCluster:
    """The objects of the files, or without any of the live cluster, with the ConfigMap that pauses everything."""
    if source.files:
        return read_cluster_of(load(source.files, stdin=sys.stdin.buffer, progress=report))
    return ReadCluster(read_live(source.kube, report, purpose, pause_namespace=pause_namespace, devices=devices))


def read_cluster_of(loaded: Loaded) -> ReadCluster:
    """What was read from files, and which kinds they lack; nodes without any pods are refused."""
    from karpool.cluster.absences import NO_PODS, absence_notice, absences, lacks_pods

    objects = loaded.objects
    if lacks_pods(objects, loaded.listed):
        raise InputError.at("", NO_PODS)
    missing = list(absences(objects, loaded.listed))
    slips = [str(warning) for warning in loaded.warnings if warning.rule == UNKNOWN_KIND]
    return ReadCluster(objects, (*slips[:_MOST_SLIPS], *([absence_notice(missing)] if missing else [])), loaded)


def cluster_from(
    source: ClusterInput,
    opener: CatalogOpener,
    choices: Choices,
    report: ReportProgress,
    groups: GroupOptions | None = None,
    *,
    nodes_needed: bool = True,
) -> LoadedCluster:
    """Read a cluster; pools that a controller would not accept supply no nodes, and node groups are pools of a kind.

    `nodes_needed`: whether input without nodes is worth a line.
    """
    spread = choices.options.default_spread
    purpose = Purpose.DECIDE_SPREAD if spread else Purpose.DECIDE
    read = read_cluster(
        source,
        report,
        purpose,
        pause_namespace=choices.settings.brakes.pause_namespace,
        devices=not choices.options.ignore_dra_requests,
    )
    report("Preparing", 0, None)
    cluster = decided_cluster(read, opener, choices, groups or GroupOptions())
    if not nodes_needed:
        cluster = replace(cluster, warnings=tuple(text for text in cluster.warnings if text != _NODELESS))
    for warning in cluster.warnings:
        say(warning, 0)
    return cluster


def decided_cluster(read: ReadCluster, opener: CatalogOpener, choices: Choices, groups: GroupOptions) -> LoadedCluster:
    """What was read, with all that decisions about it need; warnings say what may mislead."""
    objects = with_default_spread(read.objects, choices.options.default_spread)
    known = opener.for_cluster(objects.nodes, objects.node_claims, objects.node_pools)
    catalog, of_overlays = _overlaid(known, objects, choices)
    pools = tuple(as_validated(pool) for pool in objects.node_pools)
    complete = opener.complete(kwok=of_kwok(objects.node_claims, objects.node_pools))
    settings = replace(choices.settings, complete_catalog=complete)
    grouped = with_groups(changed(objects, node_pools=pools), groups)
    others = (
        *input_notices(objects, catalog, opener, complete=complete),
        *idle_discounts(opener.discounts, catalog.origins),
        *_stray_pauses(objects, settings),
        *filter(None, [unreadable_costs_notice(objects.pods)]),
    )
    of_groups = (*group_notices(grouped, groups), *idle_prices(grouped, catalog, groups))
    warnings = (*of_overlays, *read.notices, *others, *of_groups)
    return LoadedCluster(
        grouped, with_group_shapes(catalog, grouped), settings, tuple(map(one_line, warnings)), read.loaded
    )


def _overlaid(catalog: Catalog, objects: Objects, choices: Choices) -> tuple[Catalog, list[str]]:
    """The catalogue as NodeOverlays change it, if they count; and which do not."""
    if not objects.node_overlays:
        return catalog, []
    if not choices.settings.node_overlays:
        count = len(objects.node_overlays)
        return catalog, [f"{count} NodeOverlays change no prices; --feature-gates NodeOverlay=true has them do so"]
    overlaid = with_overlays(catalog, objects.node_overlays, objects.node_pools)
    return overlaid.catalog, [f"NodeOverlay {name} is left out: {why}" for name, why in overlaid.left_out.items()]


def input_notices(objects: Objects, catalog: Catalog, opener: CatalogOpener, *, complete: bool) -> Iterator[str]:
    """What the input lacks, so that the answer may mislead."""
    if not objects.nodes:
        yield _NODELESS
    names = {node.name for node in objects.nodes} | {claim.status.node_name for claim in objects.node_claims}
    lost = [pod.key for pod in objects.pods if pod.bound and not pod.terminal and pod.spec.node_name not in names]
    if lost:
        yield f"{len(lost)} pods, such as {lost[0]}, are on nodes that are not in the input; they are left out"
    unlisted = {entry.name for entry in catalog.types if entry.observed}
    if opener.source is not None and unlisted:
        then = "they have drifted" if complete else "they are kept, and cost what labels or --price say"
        yield f"the catalogue does not list {count(len(unlisted), 'type')} of nodes, such as {min(unlisted)}: {then}"
    yield from map(str, stray_settings(objects))
    yield from unmet_labels(objects.node_pools, catalog)
    yield from unpriced_regions(catalog)
    yield from unlisted_zones(catalog)


def _stray_pauses(objects: Objects, settings: DisruptionSettings) -> Iterator[str]:
    """ConfigMaps that somebody may believe to pause everything."""
    wanted = settings.brakes.pause_namespace
    for pause in objects.pauses:
        if pause.name == PAUSE_MAP and pause.metadata.namespace != wanted:
            yield f"ConfigMap {pause.key} pauses nothing: the one that does is in namespace {wanted}"


def as_validated(pool: NodePool) -> NodePool:
    """A pool whose template breaks a rule is not ready, as a controller has it."""
    broken = [flaw for flaw in controller_flaws(pool) if flaw.field.startswith("spec.template")]
    if not broken:
        return pool
    others = tuple(entry for entry in pool.status.conditions if entry.type != "Ready")
    not_ready = Condition(type="Ready", status="False", reason="ValidationFailed", message=broken[0].message)
    return changed(pool, status=changed(pool.status, conditions=(*others, not_ready)))
