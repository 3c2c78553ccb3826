"""The options about node groups; the same for every command that looks at groups."""

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final, TypeVar

import click

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import node_price
from karpool.cli.completions import files
from karpool.cli.options.input_options import with_options
from karpool.cluster.node_groups import GroupOptions, memberships
from karpool.cluster.own_labels import label_notice, likely_label
from karpool.model.group_sizes import STATUS_KEY, STATUS_NAMESPACE, Sizes, is_readable, read_sizes
from karpool.model.labels import STATUS_MAP
from karpool.model.managers import ManagerKind, manager_of
from karpool.model.node_group import NodeGroup
from karpool.model.objects import Objects
from karpool.wire.problems import InputError
from karpool.wire.sources import STDIN, ManifestSource, display_name, read_source

R = TypeVar("R")
_NAMED: Final = 5

POOL_LABEL: Final = click.option(
    "--pool-label",
    metavar="LABEL",
    help="The node label that names its pool or group, if it is not that of a cloud, Cluster API, kOps or Karpenter.",
)
GROUPS: Final = click.option(
    "--groups",
    "groups_file",
    metavar="PATH",
    shell_complete=files,
    help="A file that says how small and large node groups may be, and the price of a node that nobody else knows:"
    " `{groups: {web: {minimum: 3, maximum: 12, price: 0.25}}}`.  [default: as the ConfigMap cluster-autoscaler-status"
    " says]",
)


def group_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command `--pool-label` and `--groups`; it gets what they say as `groups`."""

    @wraps(command)
    def with_groups(*args: Any, pool_label: str | None, groups_file: str | None, **rest: Any) -> R:
        return command(*args, groups=GroupOptions(pool_label, sizes_in(groups_file)), **rest)

    return with_options(with_groups, (POOL_LABEL, GROUPS))


def sizes_in(file: str | None) -> dict[str, Sizes]:
    """The sizes of groups that a file names; none without one."""
    if file is None:
        return {}
    if file == STDIN:
        raise InputError.at("--groups", "cannot be standard input; name a file")
    source = ManifestSource(file)
    return read_sizes(read_source(source, sys.stdin.buffer), display_name(source))


def group_notices(objects: Objects, options: GroupOptions) -> Iterator[str]:
    """What is not known about the node groups of a cluster, or was said of groups that are not there."""
    yield from pool_label_notices(objects, options.pool_label)
    groups = [pool for pool in objects.node_pools if isinstance(pool, NodeGroup)]
    names = {group.name for group in groups}
    for name in sorted(options.sizes.keys() - names):
        there = ", ".join(sorted(names)) or "none"
        yield f"--groups names {name}, and no node belongs to such a group; there are: {there}"
    lost = [status.key for status in objects.autoscaler_statuses if not is_readable(status)]
    if lost:
        yield f"ConfigMap {lost[0]} cannot be read: its data.{STATUS_KEY} is not what Cluster Autoscaler writes"
    unknown = [group.name for group in groups if group.minimum is None or group.maximum is None]
    if unknown:
        some = f"{', '.join(unknown[:_NAMED])}{' and others' if len(unknown) > _NAMED else ''}"
        status = f"`kubectl get configmap {STATUS_MAP} -n {STATUS_NAMESPACE} -o yaml` or "
        yield (
            f"nobody says how small and large these node groups may be: {some}; they keep a node each and get no new"
            f" one. {'' if objects.autoscaler_statuses else status}--groups says it"
        )


def pool_label_notices(objects: Objects, label: str | None) -> Iterator[str]:
    """A label for groups that no node has; without one, the label that seems to name them where nobody is known to."""
    if label is not None:
        if notice := label_notice(label, objects.nodes):
            yield notice
        return
    claimed = {claim.status.node_name for claim in objects.node_claims}
    lost = [node for node in objects.nodes if manager_of(node, claimed=node.name in claimed).kind is ManagerKind.NOBODY]
    if found := likely_label(lost):
        yield f"the label {found} seems to name the pools of nodes such as {lost[0].name}; --pool-label {found} says so"


def idle_prices(objects: Objects, catalog: Catalog, options: GroupOptions) -> Iterator[str]:
    """Prices of groups that count for nothing, because the catalogue knows what their nodes cost."""
    told = {name: sizes.price for name, sizes in options.sizes.items() if sizes.price is not None}
    groups = memberships(objects) if told else {}
    for name, price in sorted(told.items()):
        known = {
            node_price(catalog, node.metadata.labels) for node in objects.nodes if groups.get(node.name) == name
        } - {None, catalog.with_fee(price)}
        if known:
            yield (
                f"--groups gives nodes of {name} the price {price:g}, which counts only where no other is known;"
                " --price TYPE=PRICE or --discount changes that of a type"
            )
