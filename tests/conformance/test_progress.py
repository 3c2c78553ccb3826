from pathlib import Path

from tests.conformance.progress import Progress
from tests.conformance.suites import Outcome, Result, Spec

ONE, TWO = (Spec("disruption", "Disruption", text) for text in ("Drift one", "Drift two"))


def begun(folder: Path, *specs: Spec, resume: bool = True) -> Progress:
    return Progress(folder, "karpool", specs, resume=resume)


def test_a_run_goes_on_where_another_was_cut_off(tmp_path: Path) -> None:
    first = begun(tmp_path, ONE, TWO)
    assert first.note(Result(ONE, Outcome.FAILED, 7.0, "why")) == "1/2"
    second = begun(tmp_path, ONE, TWO)
    assert second.results == [Result(ONE, Outcome.FAILED, 7.0)]
    assert second.left == [TWO]
    assert second.note(Result(TWO, Outcome.PASSED, 1.0)) == "2/2"


def test_a_run_that_is_not_to_go_on_begins_anew(tmp_path: Path) -> None:
    begun(tmp_path, ONE, TWO).note(Result(ONE, Outcome.PASSED, 7.0))
    assert begun(tmp_path, ONE, TWO, resume=False).left == [ONE, TWO]


def test_a_run_that_has_ended_leaves_nothing_to_go_on_with(tmp_path: Path) -> None:
    ended = begun(tmp_path, ONE, TWO)
    ended.note(Result(ONE, Outcome.PASSED, 7.0))
    ended.end()
    assert begun(tmp_path, ONE, TWO).left == [ONE, TWO]


def test_a_run_of_other_specs_in_between_does_no_harm(tmp_path: Path) -> None:
    begun(tmp_path, ONE, TWO).note(Result(ONE, Outcome.PASSED, 7.0))
    begun(tmp_path, ONE, resume=False)
    assert begun(tmp_path, ONE, TWO).left == [TWO]
