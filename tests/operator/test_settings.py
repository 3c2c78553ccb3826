"""Settings of the controller: what it does when nobody says anything."""

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from karpool.observability.logs import LogFormat, LogLevel
from karpool.observability.serving import Address
from karpool.operator.settings import RunSettings


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = RunSettings()
    assert settings.provider == "karpenter"
    assert settings.dry_run
    assert (settings.intervals.batch_idle, settings.intervals.batch_most) == (1, 10)
    assert (settings.intervals.poll, settings.intervals.validation) == (10, 15)
    times = settings.lease.times
    assert (times.duration, times.renew_deadline, times.retry_period) == (15, 10, 2)
    assert (settings.journal.largest, settings.journal.old_files) == (64 * 2**20, 5)
    assert (settings.log_format, settings.log_level) == (LogFormat.JSON, LogLevel.INFO)
    assert settings.shutdown_timeout == timedelta(seconds=5)


def test_nobody_outside_the_machine_is_answered_unless_asked_for() -> None:
    settings = RunSettings()
    assert settings.metrics_address == Address("127.0.0.1", 8080)
    assert settings.health_address == Address("127.0.0.1", 8081)


def test_features_are_switched_as_the_ecosystem_does() -> None:
    settings = RunSettings()
    assert not settings.decisions.spot_to_spot
    assert settings.options.reserved_capacity


def test_settings_do_not_change_while_it_runs() -> None:
    with pytest.raises(FrozenInstanceError):
        RunSettings().dry_run = False  # type: ignore[misc]
