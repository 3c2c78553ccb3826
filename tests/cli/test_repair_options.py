"""Repair on the command line: the gate, the policies, and what is wrong with a file of them."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from karpool.cli.options.decision_options import Choices, decision_options
from karpool.disruption.repair.defaults import DEFAULT_POLICIES
from karpool.wire.problems import InputError

GATE = ("--feature-gates", "NodeRepair=true")
FALLBACK = 'policies: [{conditionType: Ready, conditionStatus: "False", tolerationDuration: 1m}]'


def chosen(*arguments: str) -> Choices:
    received: list[Choices] = []

    @click.command()
    @decision_options
    def command(choices: Choices) -> None:
        received.append(choices)

    result = CliRunner().invoke(command, arguments)
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return received[0]


def test_nothing_is_repaired_unless_the_gate_says_so() -> None:
    assert chosen().settings.repair is None
    assert chosen(*GATE).settings.repair is DEFAULT_POLICIES


def test_policies_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "repair.yaml"
    file.write_text(FALLBACK)
    choices = chosen(*GATE, "--repair-policies", str(file))
    assert choices.own_repair_policies
    assert choices.settings.repair is not None
    assert [str(policy.toleration_duration) for policy in choices.settings.repair.listed] == ["1m"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policies: []", "there are no repair policies"),
        ("- a", "a map with a list of policies"),
        (FALLBACK.replace("tolerationDuration", "toleration"), "tolerationDuration: is missing"),
        (FALLBACK.replace("1m", "soon"), "tolerationDuration"),
        (FALLBACK.replace("1m}", "1m, prioritiy: 5}"), "did you mean priority"),
        (FALLBACK.replace("1m}", "1m, action: Reboot}"), "policies[0].action"),
        ("{", "line"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "repair.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        chosen(*GATE, "--repair-policies", str(file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [("--repair-policies", "x.yaml"), ("--feature-gates", "TerminateFirstRepair=true")]
)
def test_what_means_nothing_without_the_gate_is_refused(arguments: Any) -> None:
    with pytest.raises(InputError, match="means nothing without"):
        chosen(*arguments)
