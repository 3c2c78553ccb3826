"""The file of a recording: it grows, survives crashes, and whoever reads it trusts nothing."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.tables import row, table

from karpool.recording import records as r
from karpool.recording.frames import packed
from karpool.recording.history import History, histories
from karpool.recording.reader import RecordingFile, is_recording
from karpool.recording.writer import RecordingWriter
from karpool.wire.problems import InputError

START = datetime(2026, 11, 16, 8, tzinfo=UTC)
POOL = {"metadata": {"name": "general"}}


def put(t: float, name: str) -> r.Put:
    return r.Put(t=t, kind="Namespace", object={"metadata": {"name": name}})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "week.recording"


def write(path: Path, *records: r.AnyRecord) -> int:
    """Write records as one frame of a recording; returns the size of the file."""
    with RecordingWriter(path, START) as writer:
        for record in records:
            writer.history.apply(record)
            writer.write(record)
    return path.stat().st_size


def namespaces(path: Path) -> list[str]:
    file = RecordingFile(path)
    history = History(file.header)
    for _ in histories(file, history):
        pass
    return sorted(history.kinds["Namespace"])


def test_what_is_written_is_read(path: Path) -> None:
    records = (put(1.0, "shop"), r.Gap(t=9.0, since=2.0, why="no network"), r.Prices(t=9.5, prices={"a/b/spot": 0.1}))
    write(path, *records)
    file = RecordingFile(path)
    assert tuple(file) == records
    assert file.header.start == START
    assert is_recording(path)


def test_a_second_writer_goes_on_where_the_first_stopped(path: Path) -> None:
    write(path, put(1.0, "shop"))
    with RecordingWriter(path, datetime(2027, 1, 1, tzinfo=UTC)) as writer:
        assert writer.resumed
        assert list(writer.history.kinds["Namespace"]) == ["shop"]
        writer.write(put(2.0, "bank"))
    assert RecordingFile(path).header.start == START
    assert namespaces(path) == ["bank", "shop"]


def test_nobody_else_writes_to_a_recording_that_is_open(path: Path) -> None:
    with RecordingWriter(path, START), pytest.raises(InputError, match="is being written by another recorder"):
        RecordingWriter(path, START)


def test_a_file_of_something_else_is_not_appended_to(path: Path) -> None:
    path.write_text("pods: []\n")
    with pytest.raises(InputError, match="is there and is no recording"):
        RecordingWriter(path, START)
    assert path.read_text() == "pods: []\n"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_tail_is_left_out_and_cut_off_by_the_next_writer(path: Path, cut: int) -> None:
    whole = write(path, put(1.0, "shop"))
    after = write(path, put(2.0, "bank"))
    with path.open("r+b") as file:
        file.truncate(max(whole, after - cut))
    read = RecordingFile(path)
    assert [record.t for record in read if isinstance(record, r.Put)] == [1.0]
    assert read.torn == max(0, after - cut - whole)
    write(path, put(3.0, "farm"))
    assert namespaces(path) == ["farm", "shop"]
    assert RecordingFile(path).torn == 0


def test_a_tail_of_garbage_is_torn(path: Path) -> None:
    write(path, put(1.0, "shop"))
    with path.open("ab") as file:
        file.write(b"\0" * 5000)
    read = RecordingFile(path)
    assert len(list(read)) == 1
    assert read.torn == 5000


def test_damage_in_the_middle_is_no_torn_tail(path: Path) -> None:
    whole = write(path, put(1.0, "shop"))
    write(path, put(2.0, "bank"))
    write(path, put(3.0, "farm"))
    data = bytearray(path.read_bytes())
    data[whole + 20] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"is damaged at byte {whole}"):
        list(RecordingFile(path))


def lines(*entries: Any) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


HEADER = {"e": "header", "start": "2026-11-16T08:00:00Z", "format": "karpool-recording", "version": 1}


@table(
    row("another version", entries=[{**HEADER, "version": 2}], says="version 2, and this Karpool reads version 1"),
    row("no header", entries=[{"e": "alive", "t": 1.0}], says="is no recording"),
    row("not JSON", entries=[HEADER, "alive"], says="record 2 cannot be read"),
    row("an unknown record", entries=[HEADER, {"e": "boom", "t": 1.0}], says="record 2 cannot be read: .*boom"),
    row("an unknown field", entries=[HEADER, {"e": "alive", "t": 1.0, "x": 1}], says="record 2 cannot be read: .*`x`"),
    row("a second header", entries=[HEADER, HEADER], says="record 2 is a second header"),
    row(
        "time that goes back",
        entries=[HEADER, {"e": "alive", "t": 2.0}, {"e": "alive", "t": 1.0}],
        says="record 3 is of 1 s, after one of 2 s",
    ),
    row("no end of time", entries=[HEADER, {"e": "alive", "t": 1e300}], says=r"record 2 is of 1e\+300 s"),
    row("a pod that nobody knows", entries=[HEADER, {"e": "ready", "t": 1.0, "pod": 7}], says="about pod '7', which"),
    row(
        "a template that nobody knows",
        entries=[HEADER, {"e": "born", "t": 1.0, "pod": 7, "template": 3, "name": "web", "created": 1.0}],
        says="about template '3', which",
    ),
    row(
        "a kind that no recording has",
        entries=[HEADER, {"e": "put", "t": 1.0, "kind": "Secret", "object": POOL}],
        says="of kind 'Secret', which no recording has",
    ),
    row(
        "an object without a name",
        entries=[HEADER, {"e": "put", "t": 1.0, "kind": "Node", "object": {"metadata": 3}}],
        says="a Node without a name",
    ),
    row(
        "a change of nothing",
        entries=[HEADER, {"e": "changed", "t": 1.0, "kind": "Node", "key": "a", "patch": {}}],
        says="about Node 'a', which",
    ),
)
def test_a_record_that_cannot_be_is_refused_with_its_number(path: Path, entries: list[Any], says: str) -> None:
    path.write_bytes(packed(lines(*entries)))
    with pytest.raises(InputError, match=says):
        namespaces(path)


def test_a_bomb_is_refused(path: Path) -> None:
    path.write_bytes(packed(lines(HEADER)) + packed(b" " * (70 * 2**20)))
    with pytest.raises(InputError, match="more than 200 times its size"):
        list(RecordingFile(path))


def test_a_missing_file_is_one_line(path: Path) -> None:
    assert not is_recording(path)
    with pytest.raises(InputError, match="does not exist"):
        RecordingFile(path)
