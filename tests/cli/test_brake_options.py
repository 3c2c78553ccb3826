"""The options of brakes, and what it takes for `karpool run` to act."""

from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cli.test_decision_options import choices_of

from karpool.cli.main import cli
from karpool.cli.options.decision_options import decision_options, rule_options
from karpool.cli.run import run
from karpool.disruption.brakes.readiness import Pacing
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.labels import BUDGETS


@pytest.mark.parametrize("options", [decision_options, rule_options])
def test_the_options_of_brakes_arrive(options: Any) -> None:
    given = {
        "--max-total-unready-percentage": "30",
        "--ok-total-unready-count": "1",
        "--zone-least-nodes": "5",
        "--cool-down-after-failure": "1m",
        "--longest-cool-down": "0s",
        "--cool-down-after-failed-launch": "2m",
        "--cool-down-after-scale-up": "4m",
        "--claims-answered-within": "45s",
        "--cool-down-after-replacement": "7m",
        "--max-nodes-per-hour": "6",
        "--max-evictions-per-hour": "7",
        "--harm-pods": "8",
        "--harm-pods-everywhere": "9",
        "--harm-after": "11m",
        "--harm-cool-down": "12m",
        "--longest-harm": "13h",
        "--max-workload-away-percentage": "14",
        "--max-pods-away-percentage": "15",
        "--replacement-ready-within": "16m",
    }
    words = [word for pair in given.items() for word in pair]
    assert choices_of(options, "--all-pools", *words).settings.brakes == BrakeSettings(
        all_pools=True,
        most_unready_percent=30,
        unready_nodes_allowed=1,
        least_nodes_of_zone=5,
        after_failure=timedelta(minutes=1),
        longest_after_failure=timedelta(0),
        after_failed_launch=timedelta(minutes=2),
        after_scale_up=timedelta(minutes=4),
        answered_within=timedelta(seconds=45),
        after_replacement=timedelta(minutes=7),
        most_nodes_per_hour=6,
        most_evictions_per_hour=7,
        harmed_pods=8,
        harmed_pods_everywhere=9,
        harm_after=timedelta(minutes=11),
        harm_cool_down=timedelta(minutes=12),
        longest_harm=timedelta(hours=13),
        pacing=Pacing(workload_percent=14, pods_percent=15, ready_within=timedelta(minutes=16)),
    )


def test_a_plan_with_annotated_budgets_leaves_pools_without_them_alone() -> None:
    choices = choices_of(decision_options, "--annotated-budgets")
    assert choices.settings.brakes.opted_in_only
    assert choices.options.supply_annotation == BUDGETS
    all_pools = choices_of(decision_options, "--annotated-budgets", "--all-pools")
    assert not all_pools.settings.brakes.opted_in_only
    assert all_pools.options.supply_annotation is None
    assert not choices_of(decision_options).settings.brakes.opted_in_only


@pytest.mark.parametrize("value", ["nan", "-1", "101", "inf", "many"])
def test_a_percentage_that_is_none_does_not_switch_a_brake_off(value: str) -> None:
    result = CliRunner().invoke(cli, ["plan", "--max-total-unready-percentage", value])
    assert result.exit_code == 2
    assert "write a percentage from 0 to 100, such as 45" in result.output


def test_a_length_of_time_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(cli, ["plan", "--cool-down-after-failure", "soon"])
    assert result.exit_code == 2
    assert "'soon' is not a length of time; write something like 3m, or 0s for none" in result.output


@pytest.mark.parametrize(
    ("arguments", "variables", "acts"),
    [
        ([], {}, False),
        (["--dry-run"], {}, False),
        (["--act"], {}, True),
        ([], {"KARPOOL_ACT": "true"}, True),
        ([], {"KARPOOL_ACT": "false"}, False),
        ([], {"KARPOOL_DRY_RUN": "false"}, False),
    ],
)
def test_only_act_lets_a_run_write(
    arguments: list[str], variables: dict[str, str], *, acts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from karpool.cli import run as module

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    given = run.make_context("run", arguments).params
    choices = choices_of(rule_options)
    rest = {name: value for name, value in given.items() if name not in ("context", "kubeconfig")}
    assert module._settings(rest, choices, complete=False).dry_run is not acts


def test_act_and_dry_run_exclude_each_other() -> None:
    result = CliRunner().invoke(cli, ["run", "--act", "--dry-run"])
    assert result.exit_code == 2
    assert "--dry-run: does not go with --act; leave one of them out" in result.output
