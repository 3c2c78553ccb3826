"""The pages of the reference are what the code says now, and every reason has a title and an action."""

import runpy
from itertools import chain

import pytest
from tests.documentation.commands import ROOT

from karpool.compaction.reasons import CompactionReasonCode
from karpool.disruption.reasons import ReasonCode
from karpool.report.reason_words import REASON_WORDS

FOLDER = ROOT / "docs" / "reference"


def test_the_pages_are_what_the_code_says_now() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "reference"))["pages"]()
    kept = {file.name: file.read_text() for file in FOLDER.glob("*.md")}
    assert sorted(kept) == sorted(made)
    old = [name for name, text in made.items() if kept[name] != f"{text.rstrip()}\n"]
    assert not old, f"these differ from the code; run scripts/reference: {old}"


def test_every_reason_has_words_and_no_words_are_left_over() -> None:
    assert REASON_WORDS.keys() == {str(code) for code in chain(ReasonCode, CompactionReasonCode)}


@pytest.mark.parametrize("code", REASON_WORDS)
def test_a_title_is_short_and_an_action_is_a_sentence(code: str) -> None:
    words = REASON_WORDS[code]
    assert len(words.title) < 50
    assert not words.title.endswith(".")
    assert words.action.endswith(".")
