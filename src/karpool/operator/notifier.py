"""Tells a webhook of commands, failures and pauses of `karpool run`."""

from collections.abc import Callable, Iterator
from datetime import datetime

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.execution.state import RolledBack
from karpool.execution.tickets import Ticket
from karpool.observability.notices import Notice, NoticeEvent
from karpool.report.formatting import count, names_of, per_hour


class Notifier(DecisionObserver):
    """Hears of decisions, and posts a notice of each that a person would want to know of."""

    def __init__(self, post: Callable[[Notice], None], clock: Callable[[], datetime], *, dry_run: bool = False) -> None:
        self._post = post
        self._clock = clock
        self._dry_run = dry_run
        self._decided: tuple[Command, ...] = ()
        self._held: dict[tuple[str, str | None, str], Stop] = {}

    def pass_finished(self, decision: Decision) -> None:
        """Tell of brakes that took hold or let go; in a dry run, where nothing starts, also of new decisions."""
        for notice in self._brakes(decision.stops):
            self._post(notice)
        if self._dry_run and decision.commands != self._decided:
            for command in decision.commands:
                title = f"Dry run: would remove {_nodes(command.nodes)}"
                self._post(self._of(NoticeEvent.COMMAND_DECIDED, title, command))
        self._decided = decision.commands

    def _brakes(self, stops: Stops) -> Iterator[Notice]:
        told = [stop for stop in stops if stop.node is None]
        before, self._held = self._held, {(stop.code, stop.pool, stop.object): stop for stop in told}
        for key in before.keys() - self._held.keys():
            yield self._of_brake(before[key], holds=False)
        for key in self._held.keys() - before.keys():
            yield self._of_brake(self._held[key], holds=True)

    def _of_brake(self, stop: Stop, *, holds: bool) -> Notice:
        what = "everything" if stop.pool is None else f"NodePool {stop.pool}"
        details = {"code": stop.code, "nodePool": stop.pool, "object": stop.object, "until": stop.until}
        event, word = (NoticeEvent.PAUSED, "held") if holds else (NoticeEvent.RESUMED, "no longer held")
        title = f"Karpool: {what} is {word}: {stop.code}"
        return Notice(event, self._clock(), title, stop.message, "warning" if holds else "info", details)

    def command_started(self, command: Command, identity: str) -> None:
        if not self._dry_run:
            title = f"Removing {_nodes(command.nodes)}: {command.cause}"
            self._post(self._of(NoticeEvent.COMMAND_STARTED, title, command, command=identity))

    def _of(self, event: NoticeEvent, title: str, command: Command, /, **more: object) -> Notice:
        instead = f", in favour of {command.launched}" if command.replacements else ""
        pods = count(len(command.evicted), "pod")
        saved = None if command.unpriced else command.savings
        text = f"{names_of(command.nodes)}: removed by {command.method}{instead}; {pods} move, {per_hour(saved)} saved"
        details = {
            "method": command.method.value,
            "reason": command.cause.value,
            "decision": command.decision,
            "nodes": list(command.nodes),
            "replacements": len(command.replacements),
            "evictions": len(command.evicted),
            "savingsPerHour": saved,
        }
        return Notice(event, self._clock(), title, text, details={**details, **more})

    def command_completed(self, ticket: Ticket) -> None:
        if self._dry_run:
            return
        title = f"Removed {_nodes(ticket.nodes)}: {ticket.cause}"
        seconds = max(0.0, (self._clock() - ticket.created).total_seconds())
        text = f"{names_of(ticket.nodes)}: gone after {seconds:.0f} s, {per_hour(ticket.savings)} saved"
        details = {"command": ticket.id, "nodes": list(ticket.nodes), "savingsPerHour": ticket.savings}
        self._post(Notice(NoticeEvent.COMMAND_COMPLETED, self._clock(), title, text, details=details))

    def command_failed(self, command: RolledBack) -> None:
        ticket, failure = command
        title = f"Failed to remove {_nodes(ticket.nodes)}: {failure.cause}"
        text = f"{names_of(ticket.nodes)}: {failure.message}; they stay, and take pods again"
        details = {"command": ticket.id, "nodes": list(ticket.nodes), "code": failure.cause, "inARow": failure.tries}
        self._post(Notice(NoticeEvent.COMMAND_FAILED, self._clock(), title, text, "warning", details))


def _nodes(names: tuple[str, ...]) -> str:
    return f"node {names[0]}" if len(names) == 1 else f"{len(names):,} nodes"
