"""What `explain` suggests for the reasons that it gives."""

from karpool.report.reason_words import REASON_WORDS


def test_no_suggested_action_sends_people_back_to_the_command_that_prints_it() -> None:
    assert {code for code, words in REASON_WORDS.items() if "karpool explain NODE" in words.action} == set()
