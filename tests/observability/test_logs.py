"""Logs: one line per entry, in one format for all libraries, without secrets."""

import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from karpool.observability.logs import HIDDEN, LogFormat, LogLevel, setup_logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    written = capsys.readouterr()
    assert written.out == ""
    return [json.loads(line) for line in written.err.splitlines()]


def test_a_line_has_its_time_its_level_what_happened_and_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs()
    structlog.get_logger().info("command begun", nodes=("a", "b"), savings=0.5)
    (line,) = lines(capsys)
    assert list(line)[:3] == ["time", "level", "event"]
    assert line["time"].endswith("Z")
    assert line | {"time": ""} == {
        "time": "",
        "level": "info",
        "event": "command begun",
        "nodes": ["a", "b"],
        "savings": 0.5,
    }


def test_the_standard_library_logs_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs()
    logging.getLogger("aiohttp.access").warning("slow answer: %d s", 7)
    (line,) = lines(capsys)
    assert (line["level"], line["event"], line["logger"]) == ("warning", "slow answer: 7 s", "aiohttp.access")


def test_warnings_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    (line,) = lines(capsys)
    assert "DeprecationWarning: old" in line["event"]


def test_less_than_the_level_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs(level=LogLevel.WARNING)
    structlog.get_logger().info("quiet")
    logging.getLogger("x").debug("quiet")
    structlog.get_logger().error("loud")
    assert [line["event"] for line in lines(capsys)] == ["loud"]


def test_an_exception_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs()
    try:
        int("first\nsecond")
    except ValueError:
        structlog.get_logger().exception("failed")
    (line,) = lines(capsys)
    assert "ValueError: invalid literal" in line["exception"]


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "planted"},
        {"headers": {"Authorization": "planted"}},
        {"user": {"client_secret": "planted"}},
        {"error": "refused: Bearer planted"},
        {"error": ValueError("Bearer planted")},
        {"urls": ["https://me:planted@registry/x"]},
        {"text": "eyJhbGciOiJIUzI1.eyJwbGFudGVk.planted"},
        {"text": "-----BEGIN RSA PRIVATE KEY-----\nplanted\n-----END RSA PRIVATE KEY-----"},
    ],
)
@pytest.mark.parametrize("form", LogFormat)
def test_secrets_are_hidden(fields: dict[str, Any], form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs(form)
    structlog.get_logger().info("request", **fields)
    written = capsys.readouterr().err
    assert "planted" not in written
    assert HIDDEN in written


def test_secrets_of_an_exception_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs()
    try:
        int("Bearer planted")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = lines(capsys)
    assert "planted" not in line["exception"]


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logs(LogFormat.TEXT)
    structlog.get_logger().warning("command dropped", node="a")
    written = capsys.readouterr().err
    assert "warning" in written
    assert "command dropped" in written
    assert "node=a" in written


HOSTILE = "node\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\n2026-01-01T00:00:00Z [error    ] forged\r"


def test_text_shows_control_characters_of_hostile_names_instead_of_sending_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logs(LogFormat.TEXT)
    structlog.get_logger().warning(f"about {HOSTILE}", node=HOSTILE, nodes=[HOSTILE], **{HOSTILE: 1})
    logging.getLogger("library").warning("about %s", HOSTILE)
    written = capsys.readouterr().err
    assert written.count("\n") == 2, "each entry stays on its line"
    assert written.replace("\n", "").isprintable()
    assert "\\x1b[2J" in written


def test_text_indents_every_line_of_an_exception_and_shows_its_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logs(LogFormat.TEXT)
    try:
        {}[f"{HOSTILE}\n{HOSTILE}"]
    except KeyError:
        structlog.get_logger().exception("failed")
    first, *rest = capsys.readouterr().err.splitlines()
    assert "failed" in first
    assert len(rest) > 3
    assert all(line.startswith("    ") and line.isprintable() for line in rest)


def test_json_holds_no_character_that_a_terminal_obeys_and_every_one_of_the_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logs()
    structlog.get_logger().warning("about a node", node=HOSTILE)
    written = capsys.readouterr().err
    assert written.removesuffix("\n").isprintable()
    assert json.loads(written)["node"] == HOSTILE
