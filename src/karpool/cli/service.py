"""What commands that run until they are stopped share: their logs, and their end."""

import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from karpool.cli.errors import FAILED
from karpool.cli.options.option_types import OneOf
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    import asyncio

    from karpool.observability.webhook_address import WebhookAddress

LOG_OPTIONS: Final = (
    click.option("--log-format", type=OneOf(["json", "text"]), default="json", help="Lines of the log."),
    click.option(
        "--log-level",
        type=OneOf(["debug", "info", "warning", "error"]),
        default="info",
        help="What to log: this and everything more serious.",
    ),
)


NOTIFY_OPTIONS: Final = (
    click.option(
        "--notify",
        metavar="URL",
        help="Tell this webhook of commands, failures and pauses. The URL is a secret: better in KARPOOL_NOTIFY.",
    ),
    click.option(
        "--notify-file",
        metavar="PATH",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read that URL from a file, such as one of a mounted Secret.",
    ),
    click.option(
        "--notify-format",
        type=OneOf(["auto", "json", "slack"]),
        default="auto",
        help="What the webhook gets: a JSON document, or a message as Slack has it; `auto` tells Slack by its host.",
    ),
    click.option("--notify-allow-http", is_flag=True, help="Send notices without encryption, too, to another machine."),
)


def take_webhook(given: dict[str, Any]) -> "WebhookAddress | None":
    """Who is told, by the options, which are taken out of `given`."""
    url, file, form, plain = (given.pop(f"notify{end}") for end in ("", "_file", "_format", "_allow_http"))
    if url is not None and file is not None:
        raise InputError.at("--notify-file", "does not go with --notify; leave one of them out")
    if url is None and file is None:
        return None
    from karpool.observability.notices import NoticeFormat
    from karpool.observability.webhook_address import WebhookAddress

    option = "--notify" if file is None else f"--notify-file {file}"
    chosen = None if form == "auto" else NoticeFormat(form)
    return WebhookAddress.read(_url_in(file) if url is None else url, option, form=chosen, allow_http=plain)


def _url_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError.at(f"--notify-file {file}", f"cannot be read: {why}") from error


def run_service(
    work: Callable[["asyncio.Event"], Awaitable[None]], shutdown_timeout: timedelta, log_format: str, log_level: str
) -> NoReturn:
    import asyncio

    from karpool.live.process import run_until_signalled
    from karpool.observability.logs import LogFormat, LogLevel, setup_logs

    setup_logs(LogFormat(log_format), LogLevel(log_level))
    ended = asyncio.run(run_until_signalled(work, shutdown_timeout))
    sys.stdout.flush()
    sys.stderr.flush()
    # A decision cannot be interrupted, and its result is no longer needed.
    os._exit(0 if ended else FAILED)
