"""`karpool crds`: the custom resource definitions, unless the cluster has others."""

from typing import Final

import click

from karpool.cli.errors import say
from karpool.cli.inputs.live_cluster import query_target
from karpool.cli.options.input_options import KubeContext, kube_options
from karpool.live.crds import SHARED, definitions
from karpool.model.labels import GRACE_PERIOD
from karpool.wire.problems import InputError, Problem

EPILOG: Final = f"""\b
WHEN KARPENTER IS INSTALLED
  NodePool and NodeClaim are then Karpenter's, and overwriting them could break it. So
  a definition that is in the cluster without the label
  app.kubernetes.io/managed-by: karpool is left alone: nothing is printed, and the exit
  status is 2. Run Karpool beside Karpenter with `karpool run --provider karpenter`, and
  write the grace period of a NodePool as its annotation
  {GRACE_PERIOD}.
\b
EXAMPLES
  karpool crds | kubectl apply -f -
  karpool crds | kubectl apply --server-side -f -
  karpool crds --offline > crds.yaml
\b
EXIT STATUS
  0  printed; a warning on standard error says if the cluster could not be read
  2  the cluster has definitions that Karpool did not install, or an option is wrong;
     nothing is printed
"""
_SECONDS_TO_CONNECT: Final = 3.0
_SECONDS_TO_ANSWER: Final = 5.0


@click.command(epilog=EPILOG)
@click.option("--offline", is_flag=True, help="Do not read any cluster; print in any case.")
@kube_options
def crds(*, offline: bool, kube: KubeContext) -> None:
    """Print the definitions of NodePool, NodeClaim and the kinds that go with them as YAML, for kubectl apply.

    With them the API server itself refuses what `karpool validate` refuses. The cluster of the current kube context is
    read first (these definitions, nothing is changed). The definition of CapacityBuffer is left out where there is one.
    """
    click.echo(definitions(() if offline else _installed_by_others(kube)), nl=False)


def _installed_by_others(kube: KubeContext) -> tuple[str, ...]:
    """Definitions to leave out; those that must not be overwritten are refused. Warns if the cluster cannot be read."""
    import asyncio

    from karpool.kube.errors import ApiError
    from karpool.kube.kubeconfig import find_target
    from karpool.kube.transport import Timeouts
    from karpool.live.crds.installed import foreign_definitions

    try:
        target = find_target(kube.context, kube.kubeconfig)
    except InputError as error:
        if kube.chosen:
            raise
        _warn(error)
        return ()
    timeouts = Timeouts(response=_SECONDS_TO_ANSWER, connect=_SECONDS_TO_CONNECT, retries=0)
    try:
        foreign = asyncio.run(query_target(target, foreign_definitions, timeouts))
    except ApiError as error:
        _warn(error)
        return ()
    refused = [name for name in foreign if name not in SHARED]
    if refused:
        raise InputError(_overwriting(refused[0], target.context))
    return foreign


def _overwriting(name: str, context: str) -> Problem:
    message = (
        "was not installed by karpool and is not overwritten; beside Karpenter use `karpool run --provider karpenter`, "
        f"and on NodePools the annotation {GRACE_PERIOD} (--offline prints all the same)"
    )
    return Problem(file=f"context {context}", object=f"CustomResourceDefinition {name}", message=message)


def _warn(error: Exception) -> None:
    say(f"warning: printed without a check of the cluster: {error}", 0)
