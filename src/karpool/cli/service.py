"""What commands that run until they are stopped share: their logs, and their end."""

import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

import click

from karpool.cli.errors import FAILED

if TYPE_CHECKING:
    import asyncio

LOG_OPTIONS: Final = (
    click.option("--log-format", type=click.Choice(["json", "text"]), default="json", help="Lines of the log."),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        help="What to log: this and everything more serious.",
    ),
)


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
