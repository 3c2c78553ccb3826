"""Logs on standard error: one line per entry, as JSON or text, with secrets hidden."""

import logging
import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from karpool.wire.problems import one_line

HIDDEN: Final = "[hidden]"
_SECRET_FIELD: Final = re.compile(
    r"token|password|passwd|secret|authorization|credential|api_?key|private_?key", re.IGNORECASE
)
# Secrets inside any text: bearer and basic headers, JSON web tokens, PEM keys, passwords in URLs.
_SECRET_TEXT: Final = re.compile(
    r"(?<=\bBearer )\S+|(?<=\bBasic )[A-Za-z0-9+/=]{8,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    re.DOTALL,
)
_UNPRINTED: Final = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_OF_SEVERAL_LINES: Final = frozenset({"exception", "stack"})


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least serious level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def setup_logs(form: LogFormat = LogFormat.JSON, level: LogLevel = LogLevel.INFO) -> None:
    """Send all logs of this process, also those of the standard library, to standard error."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form)],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)


def hide_secrets(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """The fields, with everything that looks like a secret replaced."""
    return {key: _clean(key, value) for key, value in event.items()}


def _clean(key: str, value: Any) -> Any:
    if key.startswith("_"):
        return value
    if _SECRET_FIELD.search(key) and value is not None:
        return HIDDEN
    if isinstance(value, str):
        return _SECRET_TEXT.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        return {str(name): _clean(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", inner) for inner in value]
    return value if isinstance(value, int | float | None) else _SECRET_TEXT.sub(HIDDEN, str(value))


def _rendering(form: LogFormat) -> list[Processor]:
    if form is LogFormat.TEXT:
        plain = structlog.dev.plain_traceback
        return [
            _visible,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain, timestamp_key="time"),
        ]
    return [_common_fields_first, structlog.processors.JSONRenderer(serializer=_encode)]


def _visible(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """The fields with control characters written out: names in a cluster are not trusted, and a terminal obeys them."""
    return {one_line(str(key)): _visible_value(key, value) for key, value in event.items()}


def _visible_value(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value  # shown by `repr`, which writes them out itself
    if key in _OF_SEVERAL_LINES:
        # Indented, so that no line of it looks like an entry of the log.
        return "\n".join(f"    {one_line(line.expandtabs())}" for line in value.split("\n"))
    return one_line(value)


def _common_fields_first(_logger: Any, _method: str, event: EventDict) -> EventDict:
    first = {key: event.pop(key) for key in ("time", "level", "event") if key in event}
    return first | dict(event)


def _encode(event: EventDict, **_: Any) -> str:
    text = msgspec.json.encode(event, enc_hook=str).decode()
    # JSON lets pass what some terminals obey and some readers take for the end of a line.
    return text if text.isprintable() else _UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
