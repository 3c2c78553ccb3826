"""The options of decisions: what is typed arrives in the settings of every command that has them."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from karpool.cli.options.decision_options import Choices, decision_options, rule_options, search_options
from karpool.disruption.settings import DisruptionSettings, Weights


def choices_of(options: Any, *arguments: str) -> Choices:
    """What a command with these options gets."""
    received: list[Choices] = []

    @click.command()
    @options
    def command(choices: Choices) -> None:
        received.append(choices)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return received[0]


@pytest.mark.parametrize("options", [decision_options, rule_options])
def test_without_options_the_settings_have_their_defaults(options: Any) -> None:
    assert choices_of(options).settings == DisruptionSettings()


@pytest.mark.parametrize("options", [decision_options, rule_options])
def test_the_options_of_the_search_arrive(options: Any) -> None:
    arguments = (
        "--search",
        "prefix",
        "--effort",
        "3",
        "--eviction-price",
        "0.01",
        "--weights",
        "strict",
        "--seed",
        "7",
    )
    choices = choices_of(options, *arguments)
    wanted = DisruptionSettings(search="prefix", effort=3, eviction_price=0.01, weights=Weights.STRICT, seed=7)
    assert choices.settings == wanted
    assert choices.options.seed == 7


def test_a_command_with_the_options_of_the_search_alone_gets_what_was_chosen() -> None:
    received: list[dict[str, Any]] = []

    @click.command()
    @search_options
    def command(decisions: dict[str, Any]) -> None:
        received.append(decisions)

    for arguments in ((), ("--eviction-price", "0", "--weights", "strict")):
        assert CliRunner().invoke(command, arguments).exit_code == 0
    assert received == [{}, {"eviction_price": 0.0, "weights": "strict"}]


@pytest.mark.parametrize("options", [decision_options, rule_options])
def test_deletion_costs_of_pods_are_a_feature_gate_that_is_off(options: Any) -> None:
    gate = "PodDeletionCostManagement"
    assert not choices_of(options).settings.pod_deletion_costs
    assert choices_of(options, "--feature-gates", f"{gate}=true").settings.pod_deletion_costs
    assert not choices_of(options, "--feature-gates", f"{gate}=false").settings.pod_deletion_costs
