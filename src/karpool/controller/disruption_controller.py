"""The controller's disruption: decide, decide again a little later, start the command."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.controller.destinations import Destinations
from karpool.controller.lifecycle_controller import LifecycleController
from karpool.controller.session import Session
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import Memo, Policies
from karpool.disruption.decide import decide, decide_again
from karpool.disruption.settings import GLOBAL
from karpool.execution.start import NotStartedError, destinations, start_command
from karpool.execution.state import nominate, nominated
from karpool.execution.tickets import awaited_nodes, nodes_in_commands, waiting_replacements
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_AFTER_A_COMMAND: Final = 1.0


class DisruptionController:
    """Makes a pass at every poll, unless nothing has changed since the last one that found nothing."""

    def __init__(self, session: Session, lifecycle: LifecycleController) -> None:
        self.session = session
        self.lifecycle = lifecycle
        self.clock = session.clock
        self.store = session.store
        self.passes = 0
        self._poll = session.intervals.poll
        self._backoff = self._poll / 2
        self._seen = -1
        self._idle_until: datetime | None = None
        self._memo: Memo | None = None
        self._destinations = Destinations(session.store)

    def start(self) -> None:
        """Begin to poll."""
        self.clock.after(self._poll, self._reconcile)

    # -- passes --------------------------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        if not self.session.alive:
            return
        idle = self._nothing_changed()
        commands = () if idle else self._decide()
        if not commands:
            self.clock.after(self._poll if idle else self._next_backoff(), self._reconcile)
        elif all(command.cause is Cause.DRIFTED for command in commands):
            self._begin(commands)
        else:
            self.clock.after(self.session.intervals.validation, partial(self._validate, commands))

    def _next_backoff(self) -> float:
        """How long to wait after a pass that found nothing; longer each time."""
        self._backoff = min(2 * self._backoff, max(self._poll, self.session.intervals.patience))
        return self._backoff

    def _nothing_changed(self) -> bool:
        """Whether a pass would find nothing again, as the last one did."""
        until = self._idle_until
        unchanged = self._seen == self.session.cluster_state.opportunities
        return unchanged and until is not None and self.clock.moment < until

    def _decide(self) -> tuple[Command, ...]:
        session, now = self.session, self.clock.moment
        self.passes += 1
        for observer in session.observers:
            observer.pass_started()
        self._seen = session.cluster_state.opportunities
        decision = decide(
            session.engine(),
            self._policies(now),
            now,
            self._memo,
            explain=lambda commands: any(observer.wants_reasons(commands) for observer in session.observers),
            bound=lambda commands: any(observer.wants_bound(commands) for observer in session.observers),
        )
        self._memo = decision.memo
        for observer in session.observers:
            observer.pass_finished(decision)
        self._idle_until = None if decision.commands else self._next_change(decision.next_opening)
        return decision.commands

    def _validate(self, commands: tuple[Command, ...]) -> None:
        if not self.session.alive:
            return
        now, valid = self.clock.moment, []
        again = decide_again(commands, self.session.engine(), self._policies(now), now, self._memo)
        for command, outcome in zip(commands, again, strict=True):
            if isinstance(outcome, Command):
                valid.append(outcome)
            else:
                self._drop(command, outcome)
        self._begin(tuple(valid))

    def _policies(self, now: datetime) -> Policies:
        session, under_way = self.session, self.lifecycle.under_way()
        # A search counts on the room that earlier commands have for their pods.
        searched = session.settings.search == GLOBAL
        expected = awaited_nodes if searched else waiting_replacements
        return Policies(
            pools={pool.name: pool for pool in session.cluster_state.pools()},
            pdbs=session.pdb_source.pdbs(),
            settings=session.settings,
            in_command=nodes_in_commands(under_way),
            nominated=nominated(session.state, self.store.claims.get, now) | expected(under_way),
            destinations=self._destinations.by_pod() if searched else {},
        )

    def _next_change(self, opening: datetime | None) -> datetime:
        """When time alone may let a node take part again; at the latest after a while."""
        now = self.clock.moment
        moments = [now + timedelta(seconds=self.session.intervals.refresh)]
        moments += [until for until in self.session.state.nominations.values() if until > now]
        return min(moments if opening is None else [*moments, opening])

    # -- commands ------------------------------------------------------------------------------------------------

    def _begin(self, commands: tuple[Command, ...]) -> None:
        session = self.session
        for command in commands:
            now = self.clock.moment
            try:
                daemons = session.cluster_state.snapshot.daemons
                actions = start_command(command, self._around(command), now, session.execution, daemons)
            except NotStartedError as error:
                self._drop(command, error.reason)
                continue
            for observer in session.observers:
                observer.command_started(command)
            self._destinations.started(command, actions)
            session.execute(actions, in_order=True)
            session.state = nominate(session.state, sorted(destinations(command)), now, session.execution)
        self._backoff = self._poll / 2
        self.clock.after(_AFTER_A_COMMAND if commands else self._poll, self._reconcile)

    def _around(self, command: Command) -> Objects:
        """The objects that a command is about."""
        snapshot = self.session.cluster_state.snapshot
        pods, everything = snapshot.pods, self.store.but_pods()
        moved = [pods.get(pods.rows[move.pod]) for move in command.moves if move.pod in pods.rows]
        here = [pod for name in command.nodes for pod in self.session.pods_on(name)]
        listed = {pod.key: pod for pod in (*moved, *here)}
        states = [
            snapshot.nodes.get(row) for name in command.nodes if (row := snapshot.nodes.rows.get(name)) is not None
        ]
        return replace(
            everything,
            pods=tuple(listed.values()),
            nodes=tuple(state.node for state in states if state.node is not None),
            node_claims=tuple(state.claim for state in states if state.claim is not None),
        )

    def _drop(self, command: Command, reason: Reason) -> None:
        for observer in self.session.observers:
            observer.command_dropped(command, reason)
