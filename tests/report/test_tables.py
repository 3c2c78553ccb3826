import io
import subprocess
import sys

import pytest
from msgspec.structs import replace
from tests.report import samples

from karpool.model.reasons import Reason
from karpool.report.plans.document import AlonePart, ExplanationDocument, GroupPart, InPlanPart, PlanDocument
from karpool.report.plans.explain_table import print_explanation
from karpool.report.plans.plan_table import print_plan
from karpool.report.terminal import Screen, is_plain


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def plan_text(plan: PlanDocument, *, every_node: bool = False, plain: bool = True, width: int = 160) -> str:
    out = Terminal()
    print_plan(plan, Screen(out, plain=plain, width=width), every_node=every_node)
    return out.getvalue()


def explanation_text(explanation: ExplanationDocument, *, plain: bool = True) -> str:
    out = Terminal()
    print_explanation(explanation, Screen(out, plain=plain, width=160))
    return out.getvalue()


@pytest.mark.parametrize(
    "fact",
    [
        "requests, not usage",
        "0.6355 $/h (at most 26.0 %)",
        "464 $/month",
        "1 node of unknown price",
        "3 steps",
        "MultiNodeConsolidation",
        "replace ip-10-0-1-37, ip-10-0-2-18, ip-10-0-2-52",
        "new-1: m6i.large or 2 other types, on-demand, 0.096 $/h",
        "pods under PDB shop/cart leave in 2 waves",
        "Why 7 nodes stay",
        "PodDisruptionBudget data/postgres allows no disruption",
        "ml/train-llm-0",
        "The first 7 of 8 evictions (steps 1 to 2) bring 91 % of the savings.",
    ],
)
def test_a_plan_shows(fact: str) -> None:
    assert fact in plan_text(samples.small()[0])


@pytest.mark.parametrize(
    "fact",
    [
        "Within 2.1 % of the least possible (2.00 $/h). Of that bound pods marked do-not-disrupt make 31 %, ",
        "PodDisruptionBudgets make 5 %; what lifting one would save, ",
        "replace ip-10-0-1-37, ip-10-0-2-18, ip-10-0-2-52",
        "with new-1: c6i.xlarge or 1 other type, on-demand, 0.17 $/h",
        "with new-2: m6i.large, on-demand, 0.096 $/h",
    ],
)
def test_a_plan_with_several_replacements_and_a_bound_shows(fact: str) -> None:
    assert fact in plan_text(samples.several()[0])


def test_thousands_of_nodes_are_counted_by_reason() -> None:
    text = plan_text(samples.large(2000)[0])
    why = text[text.index("Why 1,800 nodes stay") :]
    assert len(why.splitlines()) < 20
    assert "PdbBlocks" in why
    assert "1,800" in why


def test_every_node_is_listed_when_asked_for() -> None:
    plan, _ = samples.small()
    text = plan_text(plan, every_node=True)
    assert all(node.name in text for node in plan.nodes)
    assert "replace, step 2" in text
    assert "m6i.xlarge, ? $/h" in text


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            InPlanPart(verdict="delete", step=2, steps=3, reasons=(Reason("Empty", "has no pods (step 2)", ""),)),
            "In the plan it goes in step 2 of 3: Empty: has no pods.",
        ),
        (
            InPlanPart(verdict="keep", step=None, steps=1, reasons=(Reason("NotCheaper", "costs more", "Pod a/b"),)),
            "In the plan it stays after 1 step: NotCheaper: Pod a/b: costs more.",
        ),
        (
            InPlanPart(verdict="keep", step=None, steps=0, reasons=(Reason("Paused", "is paused", "NodePool x"),)),
            "In the plan it stays, as there is no step: Paused: NodePool x: is paused.",
        ),
    ],
)
def test_an_explanation_says_what_the_plan_does_with_the_node(part: InPlanPart, words: str) -> None:
    assert words in explanation_text(replace(samples.explanation(), in_plan=part)).splitlines()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            AlonePart(verdict="delete", reasons=(), savings_per_hour=0.5),
            "Alone, today, it could go and save 0.50 $/h.",
        ),
        (
            AlonePart(verdict="replace", reasons=(), savings_per_hour=None),
            "Alone, today, it could be replaced and save ? $/h.",
        ),
        (
            AlonePart(verdict="keep", reasons=(Reason("NotCheaper", "costs more", ""),), savings_per_hour=None),
            "Alone, today, it stays: NotCheaper: costs more; it could go together with b.",
        ),
    ],
)
def test_an_explanation_says_what_could_be_done_with_the_node_alone_today(part: AlonePart, words: str) -> None:
    explanation = samples.explanation()
    group = GroupPart(nodes=(explanation.node.name, "b"), savings_per_hour=0.1)
    assert words in explanation_text(replace(explanation, alone=part, group=group)).splitlines()


def test_what_brakes_hold_stands_above_all_numbers_that_of_everything_first() -> None:
    lines = plan_text(samples.stopped(samples.small()[0])).splitlines()
    assert lines[1:3] == [
        "Nothing is disrupted at this time. ClusterUnhealthy: 5 of 9 nodes are not ready",
        "Nothing of NodePool spot is disrupted at this time. Paused: NodePool spot: is paused by its annotation",
    ]


def test_many_brakes_are_counted() -> None:
    plan = samples.stopped(samples.small()[0])
    text = plan_text(replace(plan, stops=plan.stops * 10))
    assert text.count("is disrupted at this time") == 5
    assert "And 15 more of the kind; each node says which." in text


def test_under_rates_every_step_says_when_it_can_begin_and_the_plan_how_long_it_takes() -> None:
    text = plan_text(samples.paced(samples.small()[0]))
    assert "Rates spread the steps over 2h: the last can begin at 11:30 UTC." in text
    assert "can begin" in text
    assert [time in text for time in ("09:30 UTC", "10:30 UTC", "11:30 UTC")] == [True] * 3
    assert "can begin" not in plan_text(samples.small()[0])


def test_why_nodes_stay_is_about_the_cluster_after_the_steps() -> None:
    plan, _ = samples.small()
    for every_node in (False, True):
        assert "after the steps above" in plan_text(plan, every_node=every_node)
        assert "after the steps above" not in plan_text(replace(plan, commands=()), every_node=every_node)


def test_nothing_to_do_is_said_in_words() -> None:
    assert "Nothing to do" in plan_text(replace(samples.small()[0], commands=()))


@pytest.mark.parametrize(
    "fact",
    [
        "Node ip-10-0-1-11 as of",
        "0.192 $/h",
        "3d 4h",
        "1.57 cores",
        "14 GiB",
        "[##########..............]",
        "[ok] | The node is initialized",
        "[no] | No pod forbids disruption",
        "nowhere",
        "-> ip-10-0-1-24",
        "m6i.large (us-east-1b, on-demand, general): 0.096 $/h",
        "if Pod shop/cart-0 were not marked do-not-disrupt",
        "0.19",
    ],
)
def test_an_explanation_shows(fact: str) -> None:
    assert fact in explanation_text(samples.explanation())


@pytest.mark.parametrize(
    "fact",
    [
        "Cheapest replacements, 2 nodes together",
        "new-1: m6i.large (us-east-1b, on-demand, general): 0.096 $/h",
        "new-2: c6i.xlarge (us-east-1b, on-demand, general): 0.17 $/h",
        "costs 0.266 $/h; today's node 0.192 $/h",
        "-> new-2",
    ],
)
def test_an_explanation_with_several_replacements_shows(fact: str) -> None:
    assert fact in explanation_text(samples.explanation_with_several())


def test_an_explanation_of_a_node_that_goes_with_others_names_them() -> None:
    group = GroupPart(nodes=("ip-10-0-1-11", "ip-10-0-1-24"), savings_per_hour=0.3)
    text = explanation_text(replace(samples.explanation_with_several(), group=group))
    assert "Not alone, but together with ip-10-0-1-24: saves 0.30 $/h" in text


def test_new_nodes_that_are_alike_share_a_line() -> None:
    plan, _ = samples.several()
    command = plan.commands[0]
    alike = tuple(replace(command.replacements[0], name=f"new-{number}") for number in range(1, 7))
    (text,) = [
        line
        for line in plan_text(replace(plan, commands=(replace(command, replacements=alike),))).splitlines()
        if "with" in line and "new-" in line
    ]
    assert "with new-1, new-2, new-3 and 3 more: c6i.xlarge or 1 other type, on-demand, 0.17 $/h each" in text


def test_plain_text_is_ascii_without_escapes() -> None:
    text = plan_text(samples.small()[0]) + explanation_text(samples.explanation())
    assert text.isascii()
    assert "\x1b" not in text


def test_a_terminal_gets_ticks_with_words() -> None:
    text = explanation_text(samples.explanation(), plain=False)
    assert "✓ yes" in text
    assert "✗ no" in text


def test_a_name_cannot_command_the_terminal() -> None:
    plan, _ = samples.small()
    hostile = replace(plan.nodes[0], reasons=(Reason("X", "\x1b[2J[red]gone\u202e\r\n", "Pod a/b"),))
    for plain in (True, False):
        text = plan_text(replace(plan, nodes=(hostile,)), plain=plain)
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert "[2J[red]gone" in text


@pytest.mark.parametrize(
    ("environ", "plain"),
    [({}, False), ({"NO_COLOR": "1"}, True), ({"NO_COLOR": ""}, False), ({"TERM": "dumb"}, True)],
)
def test_no_color_and_dumb_terminals_are_plain(environ: dict[str, str], *, plain: bool) -> None:
    assert is_plain(Terminal(), environ) is plain


def test_a_pipe_is_plain() -> None:
    assert is_plain(io.StringIO(), {})


def test_rich_is_loaded_only_to_print() -> None:
    code = "import sys, karpool.cli.plan, karpool.report.plans.plan_page; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - our own code
