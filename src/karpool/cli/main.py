"""`karpool`: the group of commands, each imported only when it runs, so that the others start fast."""

from importlib import import_module
from typing import Final

import click

from karpool.cli.errors import Program

EPILOG: Final = """\b
EXAMPLES
  karpool demo                            # what is this? half a minute on a virtual cluster, nothing needed
  karpool plan                            # which nodes of this cluster could go, and what would that save?
  karpool plan -f cluster.json            # the same from a file
  karpool explain ip-10-0-0-7             # why does this node stay?
  karpool snapshot -o cluster.json.zst    # the cluster in a file that can be handed on
  karpool simulate churn --seeds 20       # what would a policy cost, and how many pods would it evict?
  karpool validate -f cluster/            # is what I have complete and sound?
  karpool catalog arch=arm64 'cpu>=8'     # which instance types are there, at what price?
  kubectl get nodes,pods,pdb,nodepools,nodeclaims -A -o json | karpool validate -f -
\b
ENVIRONMENT
  NO_COLOR   print no colours; there are none either when output is not a terminal
\b
EXIT STATUS
  0  done
  1  the system failed: a full disk, no memory, a cluster that does not answer
  2  bad input or a wrong option; one line on standard error says what and where
"""

# What the list of commands says about each; its module has the same name.
COMMANDS: Final = {
    "plan": "Show what would be done, what it saves, and why other nodes stay.",
    "explain": "Show everything about one node.",
    "simulate": "Run hours or days on a virtual cluster and compare policies.",
    "demo": "Show what Karpool does, on a cluster in memory.",
    "snapshot": "Write a cluster to a file, without secrets and needless detail.",
    "run": "Run the controller: provision, consolidate, drain and terminate.",
    "compact": "Drain under-used nodes for the cluster's autoscaler, or show which.",
    "validate": "Check manifests: what they hold, and every rule they break.",
    "catalog": "List instance types, what they hold and what they cost.",
    "crds": "Print the custom resource definitions, to be applied with kubectl.",
    "version": "Print the version.",
}


class Commands(Program):
    """The commands, found by name and imported when needed; each module has its command under its own name."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"karpool.cli.{name}"), name)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
def cli() -> None:
    """Put the same pods on fewer, cheaper Kubernetes nodes.

    Karpool reads the cluster of the current kube context, or files with what `kubectl get -o json` or `-o yaml` prints,
    decides which nodes could go, and says for every node that stays why it stays. Only run and compact change anything.
    """


def main() -> None:
    cli()
