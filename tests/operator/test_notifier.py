"""What people who do not watch are told of `karpool run`: commands, failures and pauses, each once."""

from dataclasses import replace

from tests.disruption.scenarios import NOW
from tests.operator.test_decision_reporter import REPLACE, TICKET, Reported, decision

from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.disruption.command import Command
from karpool.execution.state import RolledBack
from karpool.observability.notices import Notice
from karpool.operator.notifier import Notifier

PAUSE = Stop("Paused", "the sale is on", "NodePool web", pool="web")


class Told:
    def __init__(self, *, dry_run: bool = False) -> None:
        self.notices: list[Notice] = []
        self.notifier = Notifier(self.notices.append, lambda: NOW, dry_run=dry_run)
        self._decision = decision(Reported().reporter)

    def make_pass(self, *commands: Command, stops: tuple[Stop, ...] = ()) -> list[str]:
        """The events that a pass adds."""
        before = len(self.notices)
        self.notifier.pass_finished(replace(self._decision, commands=commands, stops=Stops(stops)))
        return [notice.event.value for notice in self.notices[before:]]


def test_a_command_is_told_when_it_starts_and_when_it_is_done() -> None:
    told = Told()
    told.notifier.command_started(REPLACE, "c1")
    told.notifier.command_completed(TICKET)
    started, completed = told.notices
    assert (started.event, started.title) == ("CommandStarted", "Removing node a: Underutilized")
    assert started.text == "a: removed by SingleNodeConsolidation, in favour of 2 small; 0 pods move, 0.20 $/h saved"
    assert started.details["command"] == "c1"
    assert (completed.event, completed.text) == ("CommandCompleted", "old: gone after 0 s, 0.20 $/h saved")


def test_an_unknown_saving_is_told_as_such() -> None:
    told = Told()
    told.notifier.command_started(replace(REPLACE, unpriced=True), "c1")
    assert told.notices[0].text.endswith("? $/h saved")
    assert told.notices[0].details["savingsPerHour"] is None


def test_a_command_that_fails_is_a_warning() -> None:
    told = Told()
    failure = FailedCommand(command="c1", cause="LaunchFailed", at=NOW, message="no capacity", tries=2)
    told.notifier.command_failed(RolledBack(TICKET, failure))
    (notice,) = told.notices
    assert (notice.event, notice.severity) == ("CommandFailed", "warning")
    assert notice.title == "Failed to remove node old: LaunchFailed"
    assert "no capacity; they stay" in notice.text


def test_a_brake_is_told_when_it_takes_hold_and_when_it_lets_go() -> None:
    told = Told()
    assert told.make_pass(stops=(PAUSE,)) == ["Paused"]
    assert told.make_pass(stops=(PAUSE._replace(message="other words"),)) == []
    assert told.make_pass() == ["Resumed"]
    assert told.notices[0].title == "Karpool: NodePool web is held: Paused"
    assert told.notices[1].title == "Karpool: NodePool web is no longer held: Paused"


def test_what_holds_single_nodes_is_not_worth_a_notice() -> None:
    assert Told().make_pass(stops=(PAUSE._replace(node="a"),)) == []


def test_a_dry_run_tells_what_it_would_do_once() -> None:
    told = Told(dry_run=True)
    assert told.make_pass(REPLACE) == ["CommandDecided"]
    assert told.make_pass(REPLACE) == []
    told.notifier.command_started(REPLACE, "c1")
    told.notifier.command_completed(TICKET)
    assert [notice.title for notice in told.notices] == ["Dry run: would remove node a"]


def test_a_real_run_does_not_tell_of_decisions_twice() -> None:
    assert Told().make_pass(REPLACE) == []
