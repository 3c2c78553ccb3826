"""`karpool`: the group of commands, each imported only when it runs, so that the others start fast."""

import sys
from importlib import import_module
from keyword import iskeyword
from typing import Final

import click
from click.shell_completion import CompletionItem

from karpool import __version__
from karpool.cli.errors import Program
from karpool.wire.problems import suggestion

EPILOG: Final = """\b
EXAMPLES
  karpool demo                            # what is this? half a minute on a virtual cluster, nothing needed
  karpool plan                            # which nodes of this cluster could go, and what would that save?
  karpool plan -f cluster.json            # the same from a file
  karpool ui                              # all of it as a page in the browser, live
  karpool explain ip-10-0-0-7             # why does this node stay?
  karpool blockers --by label=team        # whom to ask: what keeps the most money where it is?
  karpool snapshot -o cluster.json.zst    # the cluster in a file that can be handed on
  karpool record week.recording --for 7d  # its history, which simulate and sweep replay
  karpool import audit.log --from audit -o day.recording  # or of those who did not record
  karpool simulate churn --seeds 20       # what would a policy cost, and how many pods would it evict?
  karpool sweep churn --set consolidateAfter=30s,5m,30m   # and which setting is the best?
  karpool validate -f cluster/            # is what I have complete and sound?
  karpool lint                            # what would an experienced colleague warn about?
  karpool catalog arch=arm64 'cpu>=8'     # which instance types are there, at what price?
  karpool catalog update --cloud aws -o prices.json   # and today?
  kubectl get nodes,pods,pdb,nodepools,nodeclaims -A -o json | karpool validate -f -
\b
ENVIRONMENT
  NO_COLOR   print no colours; there are none either when output is not a terminal
\b
EXIT STATUS
  0  done
  1  the system failed: a full disk, no memory, a cluster that does not answer
  2  bad input or a wrong option; one line on standard error says what and where
  3  what --fail-if or --fail-on names is so
"""

# What the list of commands says about each; its module has the same name.
COMMANDS: Final = {
    "plan": "Show what would be done, what it saves, and why other nodes stay.",
    "explain": "Show everything about one node or one pod.",
    "ui": "Serve a page on localhost: the fleet live, the plan, and what if.",
    "blockers": "Show what keeps the most money where it is, and what lifting it is worth.",
    "simulate": "Run hours or days on a virtual cluster and compare policies.",
    "sweep": "Try many settings of a policy: what they cost, how many pods they disturb.",
    "demo": "Show what Karpool does, on a cluster in memory.",
    "diff": "Compare two plans, or what two sets of NodePools would make of a cluster.",
    "snapshot": "Write a cluster to a file, without secrets and needless detail.",
    "record": "Follow a cluster and write its history to a file, to be replayed.",
    "import": "Make a recording of snapshots, an audit log, a trace or metrics.",
    "run": "Run the controller: provision, consolidate, drain and terminate.",
    "compact": "Drain under-used nodes for the cluster's autoscaler, or show which.",
    "budgets": "Show how many nodes may go when: the calendar of disruption budgets.",
    "lint": "Warn of what costs money or nerves, and say what it costs a month.",
    "validate": "Check manifests: what they hold, and every rule they break.",
    "catalog": "List instance types, what they hold and what they cost.",
    "crds": "Print the custom resource definitions, to be applied with kubectl.",
    "warmup": "Compile the kernels, so that the first plan does not wait for that.",
    "completion": "Print a script for bash, zsh or fish that completes commands and options.",
    "version": "Print the version.",
}


_FILES: Final = 0
_NO_FILES: Final = 4
"""What kubectl is told at the end: to complete file names as well, or not."""


class Commands(Program):
    """The commands, found by name and imported when needed; each module has its command under its own name."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = f"{name}_" if iskeyword(name) else name
        command: click.Command = getattr(import_module(f"karpool.cli.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name == "help" and not ctx.resilient_parsing:
            return self.resolve_command(ctx, [*_asked(ctx, args[1:]), "--help"])
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {name!r}{suggestion(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands with what they do; none of them is imported for that."""
        found = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _asked(ctx: click.Context, args: list[str]) -> list[str]:
    """The command that `karpool help COMMAND` asks about; of none, help is printed at once."""
    named = [text for text in args if not text.startswith("-")]
    if not named:
        click.echo(ctx.get_help())
        ctx.exit()
    return named


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.version_option(__version__, "--version", prog_name="karpool", message="%(prog)s %(version)s")
def cli() -> None:
    """Put the same pods on fewer, cheaper Kubernetes nodes.

    Karpool reads the cluster of the current kube context, or files with what `kubectl get -o json` or `-o yaml` prints,
    decides which nodes could go, and says for every node that stays why it stays. Only run and compact change anything.
    """


def main() -> None:
    cli(prog_name="karpool")


def kubectl_complete() -> None:
    """Answer kubectl, which asks `kubectl_complete-NAME` for completions of a plugin, in the form of its own."""
    from click.shell_completion import ShellComplete

    *given, begun = sys.argv[1:] or [""]
    found = ShellComplete(cli, {}, "kubectl karpool", "").get_completions(given, begun)
    for item in found:
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    files = any(item.type in ("file", "dir") for item in found)
    click.echo(f":{_FILES if files else _NO_FILES}")


def kubectl_main() -> None:
    """Run as a plugin of kubectl, which finds programs that are called `kubectl-NAME`."""
    cli(prog_name="kubectl karpool")
