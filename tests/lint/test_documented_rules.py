"""The page about lint says of every rule what the program says."""

from pathlib import Path

from karpool.lint.finding import LintCode, Rule
from karpool.lint.rules import RULES

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"


def documented(rule: Rule) -> str:
    star = "*" if rule.manifests else ""
    return f"| `{rule.code}`{star} | {rule.severity} | {rule.title} | {rule.why} | {rule.action} |"


def test_the_page_has_the_words_of_every_rule_in_their_order() -> None:
    table = [line for line in PAGE.read_text().splitlines() if " | warning | " in line or " | error | " in line]
    assert table == [documented(rule) for rule in RULES]


def test_every_code_is_that_of_one_rule() -> None:
    assert sorted(rule.code for rule in RULES) == sorted(LintCode)


def test_titles_and_actions_are_sentences_of_their_own() -> None:
    for rule in RULES:
        assert rule.why.endswith(".")
        assert rule.action.endswith(".")
        assert len(rule.title) < 60
