"""Errors: one line on standard error and an exit status, never a traceback for bad input."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karpool.kube.errors import ApiError
from karpool.wire.problems import InputError, closest, one_line, suggestion

if TYPE_CHECKING:
    from karpool.model.pod import Pod

FAILED: Final = 1
BAD_INPUT: Final = 2
CONDITION_MET: Final = 3
"""What the user asked to fail on is so."""
INTERRUPTED: Final = 130
_ENDINGS: Final = (".json", ".yaml", ".yml", ".kyaml", ".gz", ".zst")


class Program(click.Group):
    """A group of commands whose errors are lines, also when a test runs it."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command; exits with its status unless `standalone_mode` is off."""
        quiet = {**settings, "standalone_mode": False}
        if not settings.get("standalone_mode", True):
            return super().main(*args, **quiet)
        sys.exit(self._status(*args, **quiet))

    def _status(self, *args: Any, **settings: Any) -> int:
        _open_closed_streams()
        try:
            status = super().main(*args, **settings)
            sys.stdout.flush()
        except InputError as error:
            return say(str(error), BAD_INPUT)
        except ApiError as error:
            return say(str(error), FAILED)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            return 0
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "karpool"
            hint = _forgotten_option(error, settings.get("args", args[0] if args else None))
            text = " ".join(error.format_message().split())
            stop = "." if hint and text[-1:] not in ".?!" else ""
            return say(f"{text}{stop}{hint} (see {where} --help)", BAD_INPUT)
        except click.ClickException as error:
            return say(error.format_message(), BAD_INPUT)
        except (click.Abort, KeyboardInterrupt):
            return say("interrupted", INTERRUPTED)
        except BrokenPipeError:
            return _leave_quietly()
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            return say(f"{place}{error.strerror or error}", FAILED)
        except MemoryError:
            return say("not enough memory for this input", FAILED)
        return status if isinstance(status, int) else 0


def _forgotten_option(error: click.UsageError, arguments: Sequence[str] | None) -> str:
    """What to write instead of a file that is named without `-f`; empty if none is."""
    command = error.ctx.command if error.ctx else None
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        return ""  # it is the value of an option that is wrong
    if command is None or not any("-f" in option.opts for option in command.params):
        return ""
    given = sys.argv[1:] if arguments is None else arguments
    valued = {name for option in command.params if not getattr(option, "is_flag", False) for name in option.opts}
    named = [text for before, text in pairwise(["", *given]) if before not in valued and _is_file(text)]
    return f" {_meant(named[0])}" if named else ""


def _meant(file: str) -> str:
    return f"Did you mean -f {file}?"


def refuse_files(option: str, names: Iterable[str], kind: str, *, pods: bool = False) -> None:
    """Refuse paths in place of names: no object is called like that, and nothing was said of what to read.

    `pods`: names may be those of pods, with their namespaces.
    """
    for name in names:
        of_pod = pods and name.count("/") == 1 and name[0].isalnum() and not Path(name).exists()
        if ("/" in name and not of_pod) or name.endswith(_ENDINGS):
            raise InputError.at(option, f"{name!r} is a file, not the name of a {kind}. {_meant(name)}")


def _is_file(text: str) -> bool:
    """Whether an argument looks like something to read."""
    return not text.startswith("-") and (text.endswith(_ENDINGS) or Path(text).exists())


def say(message: str, status: int) -> int:
    """Print one line on standard error; the status comes back for the caller to exit with."""
    click.echo(f"karpool: {one_line(message)}".encode("utf-8", "backslashreplace"), err=True)
    return status


def unknown_node(option: str, name: str, names: Collection[str], pods: "Iterable[Pod]" = ()) -> InputError:
    """No such node; who wrote the name of a pod is told where it runs."""
    hint = suggestion(name, names)
    if not hint:
        node_of = {called: pod.spec.node_name for pod in pods if pod.bound for called in (pod.name, pod.key)}
        meant = closest(name, list(node_of))
        hint = f"; pod {meant} runs on node {node_of[meant]}" if meant else ""
    return InputError.at(option, f"there is no node {name!r} among the {len(names)} that were read{hint}")


def unknown_node_or_pod(option: str, name: str, nodes: Collection[str], pods: Collection[str]) -> InputError:
    """No such node and no such pod; `pods` are namespaces and names."""
    hint = suggestion(name, nodes)
    if not hint:
        key_of = {called: key for key in pods for called in (key.partition("/")[2], key)}
        meant = closest(name, list(key_of))
        hint = f"; did you mean pod {key_of[meant]}?" if meant else ""
    read = f"{len(nodes)} nodes and {len(pods)} pods that were read"
    return InputError.at(option, f"there is no node and no pod {name!r} among the {read}{hint}")


def _open_closed_streams() -> None:
    """A shell can close our streams (`>&-`); Python then has None in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _leave_quietly() -> int:
    """The reader of our output has gone, as `head` does; keep the interpreter from complaining at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
