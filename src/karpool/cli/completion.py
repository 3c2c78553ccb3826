"""`karpool completion`: what a shell needs to complete commands, options and names."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from karpool.cli.options.option_types import OneOf

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_KARPOOL_COMPLETE"
EPILOG: Final = """\b
EXAMPLES
  source <(karpool completion bash)       # now; in ~/.bashrc for every shell
  karpool completion bash > ~/.local/share/bash-completion/completions/karpool
  karpool completion zsh > ~/.zfunc/_karpool    # with fpath+=~/.zfunc before compinit
  karpool completion fish > ~/.config/fish/completions/karpool.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", metavar="SHELL", type=OneOf(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for bash, zsh or fish that completes commands, options, their values, and scenarios.

    No cluster is asked while you type.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows the shells that are listed
    program = context.find_root().command
    source = kind(program, {}, "karpool", VARIABLE).source()
    # click parts what it tells fish at each comma, and shows a sentence up to its first one only.
    click.echo(source.replace('string split ","', 'string split --max 1 ","'), nl=False)
