"""The annotation of a node: what the original wrote is read, and what is written the original can read."""

import json
from datetime import timedelta

import pytest
from tests.compaction.clusters import NOW

from karpool.compaction.marks import (
    ANNOTATION,
    Mark,
    decode_mark,
    encode_mark,
    updated_mark,
)

BY_THE_ORIGINAL = (
    '{"markedForRemoval":true,"markedAt":"2026-06-15T12:00:00Z",'
    '"scaleDownInProgress":false,"lastUpdated":"2026-06-15T12:00:00Z"}'
)
MARKED = Mark(marked=True, marked_at=NOW, updated=NOW)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        (BY_THE_ORIGINAL, MARKED),
        (
            '{"markedForRemoval":true,"markedAt":"2026-06-15T14:00:00+02:00","lastUpdated":"2026-06-15T14:00:00+02:00"}',
            MARKED,
        ),
        (
            '{"markedForRemoval":false,"markedAt":"","scaleDownInProgress":true,"lastUpdated":"2026-06-15T12:00:00Z"}',
            Mark(in_progress=True, updated=NOW),
        ),
        ('{"scaleDownInProgress":true,"lastUpdated":"2026-06-15T12:00:00Z"}', Mark(in_progress=True, updated=NOW)),
        ('{"scaleDownInProgress":false,"lastUpdated":""}', Mark()),
        ('{"markedForRemoval":true,"markedAt":"yesterday","more":[1]}', Mark(marked=True)),
        ('{"markedForRemoval":true,"markedAt":"2026-06-15T12:00:00"}', Mark(marked=True)),
        ('{"markedForRemoval":"true","markedAt":5}', Mark(marked=True)),
        ("{}", Mark()),
        ("", Mark()),
        ("null", Mark()),
        ("not json", Mark()),
    ],
)
def test_what_the_original_wrote_is_understood(text: str, mark: Mark) -> None:
    assert decode_mark({ANNOTATION: text}) == mark


def test_a_node_without_the_annotation_has_no_mark() -> None:
    assert decode_mark({}) == Mark()


@pytest.mark.parametrize(
    "mark",
    [
        Mark(),
        MARKED,
        Mark(in_progress=True, updated=NOW),
        Mark(in_progress=True, updated=NOW, drained_at=NOW),
        Mark(updated=NOW, retry_after=NOW + timedelta(hours=1)),
    ],
)
def test_what_is_written_is_read_again(mark: Mark) -> None:
    assert decode_mark({ANNOTATION: encode_mark(mark)}) == mark


def test_it_is_written_as_the_original_wrote_it() -> None:
    assert encode_mark(MARKED) == BY_THE_ORIGINAL
    assert json.loads(encode_mark(Mark(in_progress=True, updated=NOW)))["markedAt"] == ""


def test_a_scale_down_in_progress_is_not_marked_anew() -> None:
    assert updated_mark(Mark(in_progress=True, updated=NOW), NOW, underutilized=True) == Mark(
        in_progress=True, updated=NOW
    )
