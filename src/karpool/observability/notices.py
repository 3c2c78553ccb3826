"""Notices for people who do not watch: what happened, in a sentence, as JSON or as Slack has it."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

_API_VERSION: Final = "karpool.sh/v1"
_LONGEST: Final = 3000


class NoticeEvent(StrEnum):
    """What may be told."""

    COMMAND_DECIDED = "CommandDecided"
    COMMAND_STARTED = "CommandStarted"
    COMMAND_COMPLETED = "CommandCompleted"
    COMMAND_FAILED = "CommandFailed"
    DRAIN_STARTED = "DrainStarted"
    DRAIN_FINISHED = "DrainFinished"
    DRAIN_FAILED = "DrainFailed"
    PAUSED = "Paused"
    RESUMED = "Resumed"


class NoticeFormat(StrEnum):
    """How a receiver wants notices: as a document, or as a message for Slack and what understands the same."""

    JSON = "json"
    SLACK = "slack"


class Notice(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened: its kind, a title, a sentence, and the same as fields."""

    event: NoticeEvent
    time: datetime
    title: str
    text: str
    severity: Literal["info", "warning"] = "info"
    details: dict[str, Any] = {}


def body_of(notice: Notice, form: NoticeFormat, program: str, instance: str) -> bytes:
    """What is sent; `program` and `instance` say who sends it."""
    if form is NoticeFormat.SLACK:
        mark = ":warning: " if notice.severity == "warning" else ""
        text = f"{mark}*{_slack(notice.title)}*\n{_slack(notice.text)}"
        return msgspec.json.encode({"text": text[:_LONGEST]})
    head = {"apiVersion": _API_VERSION, "kind": "Notification", "program": program, "instance": instance}
    return msgspec.json.encode({**head, **msgspec.to_builtins(notice, builtin_types=(datetime,))})


def _slack(text: str) -> str:
    """Text without Slack's control sequences, of which mentions of everybody are one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "\u2217")
