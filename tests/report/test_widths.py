"""Tables on terminals of every width: numbers are whole, and what does not fit is named."""

import io
import re
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.text import Text
from tests.report import samples

from karpool.cli.main import cli
from karpool.report.plans.plan_table import print_plan
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Cell, Screen, right, wrapped

ROOT = Path(__file__).parents[2]
NOON = "2026-11-15T12:00:00Z"
NUMBER = re.compile(r"(?<![\w.,:/-])[-+]?[0-9][0-9.,]*(?![\w.,:/-])")
AMOUNT = re.compile(r"[-+~<>=$(]*[0-9][-0-9.,:?]*[%a-zA-Z]*[).,:;]*")
CODE = re.compile(r"(?<![\w.-])[A-Z][a-z]+[A-Z][A-Za-z]+(?![\w.-])")
WIDTHS = range(60, 201)
COLUMNS = ("name", right("pods"), right("price", spare=1), TableColumn("zone", spare=2), wrapped("why"))
ROW = ("a-node-with-a-long-name", "1,234,567", "12.3456", "us-east-1a", "because 12345678901234567890 pods are on it")


def printed(width: int) -> str:
    out = io.StringIO()
    Screen(out, plain=True, width=width).table(COLUMNS, [ROW])
    return out.getvalue()


def numbers(text: str) -> Counter[str]:
    return Counter(NUMBER.findall(text))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_numbers_are_never_cut(width: int) -> None:
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert "1,234,567" in text
    for cell, title in ((ROW[2], "price"), (ROW[3], "zone")):
        assert (cell in text) != (title in text.partition("Left out")[2])


def test_what_does_not_fit_is_left_out_by_its_importance() -> None:
    left_out = [printed(width).partition("Left out for lack of width: ")[2] for width in range(45, 110)]
    assert "zone.\n" in left_out
    assert "price, zone.\n" in left_out
    assert left_out[-1] == ""


def test_a_column_without_a_title_is_named_when_it_is_left_out() -> None:
    out = io.StringIO()
    Screen(out, plain=True, width=20).table(("a", right("", spare=1, name="change")), [("x" * 12, "1234567890")])
    assert "Left out for lack of\nwidth: change." in out.getvalue()


# -- what commands print ---------------------------------------------------------------------------------------------


def without_digits(cell: Cell) -> Text:
    """A cell with letters for the digits of names, which may be broken anywhere."""
    text = cell if isinstance(cell, str) else cell.plain
    return Text(
        re.sub(r"\S+", lambda word: word[0] if AMOUNT.fullmatch(word[0]) else re.sub(r"\d", "x", word[0]), text)
    )


class Recording:
    """What was printed on screens, which can be printed again at any width."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.printed: list[tuple[str, tuple[Any, ...]]] = []
        self._within = False
        for name in ("line", "heading", "table"):
            monkeypatch.setattr(Screen, name, self._recorded(getattr(Screen, name)))

    def _recorded(self, method: Callable[..., None]) -> Callable[..., None]:
        @wraps(method)
        def printing(screen: Screen, *given: Any) -> None:
            if self._within:
                return method(screen, *given)
            if method.__name__ == "table":
                given = (list(given[0]), [[without_digits(cell) for cell in row] for row in given[1]])
            self.printed.append((method.__name__, given))
            self._within = True
            try:
                return method(screen, *given)
            finally:
                self._within = False

        return printing

    def at(self, width: int) -> str:
        out = io.StringIO()
        screen = Screen(out, plain=True, width=width)
        self._within = True
        for name, given in self.printed:
            getattr(screen, name)(*given)
        self._within = False
        return out.getvalue()


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    return Recording(monkeypatch)


def expect_whole_words_at_every_width(recording: Recording) -> None:
    """Every number is one of the widest table, and every reason is written in full, or left out and named."""
    text = recording.at(1000)
    whole, codes = numbers(text), Counter(CODE.findall(text))
    assert whole.total() > 5
    for width in WIDTHS:
        text = recording.at(width)
        extra = numbers(text) - whole
        assert not extra, (width, extra)
        assert max(map(len, text.splitlines())) <= width
        if "Left out for lack of width" not in text:
            assert Counter(CODE.findall(text)) == codes, width


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands below read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from cloud_clusters import generate
    from clusters import manifest

    Path("examples").symlink_to(ROOT / "examples")
    Path("fleet").mkdir()
    Path("fleet/groups.json").write_bytes(manifest(generate("eks-groups", 20, 1)))
    Path("small.yaml").write_text(SMALL)
    pools = (ROOT / "examples" / "nodepools.yaml").read_text()
    Path("old.yaml").write_text(pools)
    Path("new.yaml").write_text(pools.replace("WhenEmptyOrUnderutilized", "WhenEmpty"))
    return tmp_path


SMALL: Final = """
name: small
pools:
- metadata: {name: general}
  spec: {disruption: {consolidateAfter: 10m}}
workloads:
- {name: web, cpu: 900m, memory: 1Gi, replicas: {base: 6, noise: {share: 0.5}}}
length: 20m
policies:
  quick: {decisions: {search: prefix}}
  slow: {pools: {general: {consolidateAfter: 30m}}}
"""
QUICK: Final = {command: {"effort": 0, "search": "prefix"} for command in ("plan", "explain", "diff", "blockers")}
FILES: Final = ("-f", "examples", "--at", NOON)
GROUPS: Final = ("-f", "fleet/groups.json", "--at", "2026-03-01T12:00:00Z")


def run(*arguments: str) -> None:
    result = CliRunner().invoke(cli, arguments, default_map=QUICK)
    assert result.exit_code == 0, (result.stderr, result.exception)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "arguments",
    [
        ("compact", "--plan", *GROUPS),
        ("compact", "--plan", *GROUPS, "--node", "ip-10-0-0-12.eu-west-1.compute.internal"),
        ("catalog", "family=m6i"),
        ("catalog", "family in (t4g,p5)", "cpu<=4"),
        ("catalog", "--catalog", "azure:westus2", "family=D", "cpu=2"),
        ("catalog", "--catalog", "gcp:europe-west1", "family in (c3,e2)", "cpu<=4"),
        ("budgets", *FILES),
        ("validate", "-f", "examples"),
    ],
    ids=" ".join,
)
def test_quick_commands_cut_no_number_at_any_width(recording: Recording, arguments: tuple[str, ...]) -> None:
    run(*arguments)
    expect_whole_words_at_every_width(recording)


@pytest.mark.slow
@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", *FILES, "--by", "namespace"),
        ("plan", *FILES, "--all"),
        ("plan", *GROUPS, "--suggest-pools", "--all"),
        ("plan", "--fleet", "fleet", "--at", NOON, "--workers", "1"),
        ("explain", "general-7", *FILES),
        ("explain", "ip-10-0-0-12.eu-west-1.compute.internal", *GROUPS),
        ("compact", "--plan", *GROUPS, "--all"),
        ("lint", *FILES),
        ("blockers", *FILES),
        ("diff", "old.yaml", "new.yaml", *FILES),
        ("simulate", "small.yaml", "--seeds", "2"),
        ("simulate", "weights-gpu", "--length", "10m"),
        ("sweep", "small.yaml", "--set", "consolidateAfter=0s,30m", "--workers", "1"),
        ("demo",),
    ],
    ids=" ".join,
)
def test_no_command_cuts_a_number_at_any_width(recording: Recording, arguments: tuple[str, ...]) -> None:
    run(*arguments)
    expect_whole_words_at_every_width(recording)


NODE: Final = "gke-shop-default-pool-1a2b3c4d-0001"


@pytest.mark.parametrize("width", [60, 75, 90, 160])
def test_names_are_not_broken_in_a_column_of_their_own_nor_in_prose_that_has_room_for_them(width: int) -> None:
    out = io.StringIO()
    screen = Screen(out, plain=True, width=width)
    columns = ("node", TableColumn("verdict", spare=1), right("saved", spare=2), wrapped("why"))
    name = screen.lines((NODE, "  default-pool, e2-standard-4"))
    screen.table(columns, [(name, "keep", "1.25", "a reason " * 9)])
    steps = (right("step"), TableColumn("method", spare=2), right("moved", spare=1), wrapped("what"))
    screen.table(steps, [("1", "MultiNodeConsolidation", "7", f"delete {NODE}, c3-standard-192-highmem-lssd")])
    text = out.getvalue()
    assert text.count(NODE) == 2
    assert "c3-standard-192-highmem-lssd" in text
    assert "reason" in text


def test_names_in_prose_break_before_the_prose_is_left_out() -> None:
    out = io.StringIO()
    Screen(out, plain=True, width=60).table(
        (right("a"), right("b"), wrapped("c")), [("1" * 15, "2" * 15, f"of {NODE}")]
    )
    assert "Left out" not in out.getvalue()


def test_reasons_are_whole_where_there_is_least_room() -> None:
    out = io.StringIO()
    code = "MultiplePodDisruptionBudgets"
    rows = [(code, "1,200", "12.50", f"{code}: 3 of them are about Pod shop/cart-0")]
    columns = ("reason", right("nodes"), right("$/h", spare=1), wrapped("for example"))
    Screen(out, plain=True, width=60).table(columns, rows)
    assert code in out.getvalue()
    assert "Left out for lack of width: $/h, for example." in out.getvalue().replace("\n", " ")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_of_the_summary_of_a_plan_the_saving_is_never_left_out(width: int) -> None:
    plan = samples.small()[0]
    part = replace(plan.before, price_per_hour=123456.25, unpriced_nodes=1)
    savings = replace(plan.savings, price_per_hour=12345.25, percent=12.5)
    out = io.StringIO()
    shown = replace(plan, before=part, after=part, savings=savings)
    print_plan(shown, Screen(out, plain=True, width=width), every_node=False)
    summary = out.getvalue().partition("of unknown price")[0]
    assert re.search(r"12,?345\.25 \$/h \(at most 12\.5 %\)", summary)
    assert "$/month" in summary
    assert ("Left out for lack of width: before" in " ".join(summary.split())) is (width < 80)


@pytest.mark.slow
def test_a_long_plan_ends_as_it_begins() -> None:
    plan = samples.large(2000)[0]
    out = io.StringIO()
    print_plan(plan, Screen(out, plain=True, width=160), every_node=True)
    last = out.getvalue().splitlines()[-1]
    assert last.startswith(f"In all: {plan.before.nodes:,} -> {plan.after.nodes:,} nodes, ")


def test_without_all_a_plan_of_thousands_of_nodes_stays_short() -> None:
    out = io.StringIO()
    print_plan(samples.large(3000)[0], Screen(out, plain=True, width=160), every_node=False)
    assert len(out.getvalue().splitlines()) < 200
    assert "more; --all lists them" in out.getvalue()


def test_without_a_command_the_help_is_printed() -> None:
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage:")
    assert result.stderr == ""
