from pathlib import Path

from tests.conformance.expected import Expected, read_expected
from tests.conformance.performance import Bounds, Phase
from tests.conformance.results import KARPENTER, KARPOOL, PAGE, keep, page, read_kept
from tests.conformance.suites import Outcome, Result, Spec

ONE, TWO = (Spec("disruption", "Disruption", text) for text in ("Drift one", "Drift two"))
EXPECTED = Expected({TWO.name: (Outcome.FAILED, "no such thing")}, (), frozenset())


def test_a_new_result_takes_the_place_of_the_old_one_and_others_stay(tmp_path: Path) -> None:
    keep(KARPOOL, [Result(ONE, Outcome.PASSED, 1.4), Result(TWO, Outcome.PASSED, 2.0)], "2026-11-15", tmp_path)
    keep(KARPOOL, [Result(TWO, Outcome.FAILED, 3.0)], "2026-11-16", tmp_path)
    kept = read_kept(KARPOOL, tmp_path)
    assert [(kept[spec.name].outcome, kept[spec.name].day) for spec in (ONE, TWO)] == [
        (Outcome.PASSED, "2026-11-15"),
        (Outcome.FAILED, "2026-11-16"),
    ]
    assert read_kept(KARPENTER, tmp_path) == {}


def test_the_page_shows_both_controllers_sums_and_the_reason(tmp_path: Path) -> None:
    ours = keep(KARPOOL, [Result(ONE, Outcome.PASSED, 1.4), Result(TWO, Outcome.FAILED, 30.0)], "2026-11-15", tmp_path)
    theirs = keep(KARPENTER, [Result(ONE, Outcome.PASSED, 2.0)], "2026-11-16", tmp_path)
    text = page([ONE, TWO], {KARPOOL: ours, KARPENTER: theirs}, EXPECTED, "Karpenter v0", {}, processors=2)
    assert "| disruption | 2 | 1 | 1 | 1 | 0 |" in text
    assert "| Drift one | passed | 1 | passed | 2 |  |" in text
    assert "| Drift two | failed | 30 |  |  | no such thing |" in text
    assert "Versions: Karpenter v0. Run 2026-11-15." in text


def test_what_the_performance_suite_measured_is_kept_and_shown_between_its_thresholds(tmp_path: Path) -> None:
    spec = Spec("performance", "Performance", "Basic should scale")
    phase = Phase("scale_out", 113.0, 156, 0, cpu=0.89, memory=0.84, heap=237.3, resident=329.3, cores=0.08)
    keep(KARPOOL, [Result(spec, Outcome.PASSED, 224.0, phases=(phase,))], "2026-11-16", tmp_path, load=5.26)
    ours = read_kept(KARPOOL, tmp_path)
    assert (ours[spec.name].phases, ours[spec.name].load) == ((phase,), 5.3)
    bounds = {"scale_out": Bounds("basic/scaleOut", {"seconds": ("<", 120.0), "heap": ("<", 120.0)})}
    text = page([spec], {KARPOOL: ours, KARPENTER: {}}, EXPECTED, "Karpenter v0", bounds, processors=2)
    assert "| `scale_out` | threshold | < 120 |  |  |  |  | < 120 |  |  |  |" in text
    assert "|  | Karpool | 113 | 156 | 0 | 89% | 84% | **237** | 329 | 0.08 | 5 |" in text
    assert "wanted one of its\n2 processors" in text


def test_a_spec_without_a_result_says_why_until_it_has_one(tmp_path: Path) -> None:
    expected = Expected({}, (), frozenset(), {ONE.name: "too large", TWO.name: "too long"})
    ours = keep(KARPOOL, [Result(TWO, Outcome.PASSED, 9.0)], "2026-11-15", tmp_path)
    text = page([ONE, TWO], {KARPOOL: ours, KARPENTER: {}}, expected, "Karpenter v0", {}, processors=2)
    assert "| Drift one |  |  |  |  | too large |" in text
    assert "| Drift two | passed | 9 |  |  |  |" in text


def test_what_a_failed_spec_measured_beyond_a_threshold_is_its_reason(tmp_path: Path) -> None:
    spec = Spec("performance", "Performance", "Basic should scale")
    phase = Phase("scale_out", 129.0, 160, 0, cpu=0.4, memory=0.84, heap=257.0, resident=349.0, cores=0.1)
    ours = keep(KARPOOL, [Result(spec, Outcome.FAILED, 231.0, phases=(phase,))], "2026-11-17", tmp_path)
    asked = {"seconds": ("<", 120.0), "cpu": (">", 0.53), "heap": ("<", 120.0)}
    bounds = {"scale_out": Bounds("basic/scaleOut", asked)}
    text = page([spec], {KARPOOL: ours, KARPENTER: {}}, EXPECTED, "Karpenter v0", bounds, processors=2)
    why = "`scale_out`: 40% of CPU, asked: > 53% of CPU; `scale_out`: 129 s, asked: < 120 s"
    assert f"| Basic should scale | failed | 231 |  |  | {why} |" in text
    expected = Expected({spec.name: (Outcome.FAILED, "other work")}, (), frozenset())
    text = page([spec], {KARPOOL: ours, KARPENTER: {}}, expected, "Karpenter v0", bounds, processors=2)
    why += "; other work"
    assert f"| Basic should scale | failed | 231 |  |  | {why} |" in text


def test_a_failed_spec_of_karpenter_has_its_reason_beside_what_is_known_of_ours(tmp_path: Path) -> None:
    expected = Expected({}, (), frozenset(), peer_not_passed={ONE.name: "names are too long"})
    ours = keep(KARPOOL, [Result(ONE, Outcome.PASSED, 1.0)], "2026-11-15", tmp_path)
    theirs = keep(KARPENTER, [Result(ONE, Outcome.FAILED, 9.0)], "2026-11-15", tmp_path)
    text = page([ONE], {KARPOOL: ours, KARPENTER: theirs}, expected, "Karpenter v0", {}, processors=2)
    assert "| Drift one | passed | 1 | failed | 9 | Karpenter: names are too long |" in text


def test_every_spec_of_the_page_that_has_not_passed_says_why() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.count(" | ") == 5]
    specs = [row for row in rows if row[1] != "Karpool"]
    assert len(specs) > 100
    not_passed = [row for row in specs if row[1].strip() != "passed" or row[3].strip() not in ("", "passed")]
    assert [row[0] for row in not_passed if not row[5].strip("| ")] == []


def test_every_kept_result_that_did_not_pass_is_listed_with_its_reason() -> None:
    expected = read_expected()
    listed = {name: outcome for name, (outcome, _) in expected.not_passed.items()}
    ours = {name: kept.outcome for name, kept in read_kept(KARPOOL).items() if kept.outcome is not Outcome.PASSED}
    theirs = {name for name, kept in read_kept(KARPENTER).items() if kept.outcome is not Outcome.PASSED}
    assert listed == ours
    assert set(expected.peer_not_passed) == theirs
