"""The controller's disruption: decide, decide again a little later, start the command."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.cluster.nodes import StateNode
from karpool.controller.destinations import Destinations
from karpool.controller.lifecycle_controller import LifecycleController
from karpool.controller.session import Session
from karpool.disruption.brakes.dropped_commands import after_drop
from karpool.disruption.brakes.ledger import evictions_by_namespace
from karpool.disruption.brakes.rates import rates_left
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.decide import Decision, decide, decide_again
from karpool.disruption.fleet_search.target import Answer, SearchRequest
from karpool.disruption.memo import Memo
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.repair.diagnosis import healed
from karpool.disruption.settings import GLOBAL
from karpool.execution.commands import drains_anyway
from karpool.execution.fresh_facts import FreshFacts, changed_since
from karpool.execution.start import NotStartedError, destinations, start_command
from karpool.execution.state import nominate, nominated
from karpool.execution.tickets import awaited_nodes, command_id, nodes_in_commands, waiting_replacements
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_AFTER_A_COMMAND: Final = 1.0
_REST: Final = 20.0
"""How much longer than a search it is until the next one, at least."""


class DisruptionController:
    """Makes a pass at every poll, unless nothing has changed since the last one that found nothing."""

    def __init__(self, session: Session, lifecycle: LifecycleController) -> None:
        self.session = session
        self.lifecycle = lifecycle
        self.clock = session.clock
        self.store = session.store
        self.passes = 0
        self.turns = 0
        """How often it was asked for a pass, whether or not there was anything to decide."""
        self._poll = session.intervals.poll
        self._backoff = self._poll / 2
        self._seen = -1
        self._doubts: tuple[Stop, ...] = ()
        self._idle_until: datetime | None = None
        self._memo: Memo | None = None
        self._turn = 0
        self._polls = False
        """Whether the next pass is only waited for, so that it may as well come earlier."""
        self._destinations = Destinations(session.store)

    def start(self) -> None:
        """Begin to poll."""
        self._pass_after(self._poll)

    # -- passes --------------------------------------------------------------------------------------------------

    def _pass_after(self, delay: float) -> None:
        """Make a pass in so many seconds, in place of one that is due later."""
        self._turn += 1
        self._polls = True
        self.clock.after(delay, partial(self._reconcile, self._turn))

    def _reconcile(self, turn: int) -> None:
        if not self.session.alive or turn != self._turn:
            return
        self._polls = False
        self.turns += 1
        idle = self._nothing_changed()
        commands = () if idle else self._decide()
        if not commands:
            self._pass_after(self._poll if idle else self._next_backoff())
        elif all(command.cause in (Cause.DRIFTED, Cause.UNHEALTHY) for command in commands):
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
        unchanged = self._seen == self.session.cluster_state.opportunities and self._doubts == self.session.doubts()
        return unchanged and until is not None and self.clock.moment < until

    def _decide(self) -> tuple[Command, ...]:
        session, now = self.session, self.clock.earliest
        self.passes += 1
        for observer in session.observers:
            observer.pass_started()
        self._seen, self._doubts = session.cluster_state.opportunities, session.doubts()
        decision = decide(
            session.engine(),
            self.policies(now),
            now,
            self._memo,
            explain=lambda commands: any(observer.wants_reasons(commands) for observer in session.observers),
            bound=lambda commands: any(observer.wants_bound(commands) for observer in session.observers),
        )
        self._memo = decision.memo
        for observer in session.observers:
            observer.pass_finished(decision)
        self._idle_until = None if decision.commands else self._next_change(decision)
        if decision.search is not None:
            self._search(decision.search)
        return decision.commands

    def _validate(self, commands: tuple[Command, ...]) -> None:
        if not self.session.alive:
            return
        now, valid = self.clock.earliest, []
        again = decide_again(commands, self.session.engine(), self.policies(now), now, self._memo)
        for command, outcome in zip(commands, again, strict=True):
            if isinstance(outcome, Command):
                valid.append(outcome)
            else:
                self._drop(command, outcome)
        self._begin(tuple(valid))

    def policies(self, now: datetime) -> Policies:
        """What decisions have to respect now."""
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
            stops=session.stops(now),
            rates=rates_left(self.store.but_pods(), session.settings.brakes, now),
            uncertainty=max(self.clock.latest - now, timedelta(0)),
        )

    # -- searches ------------------------------------------------------------------------------------------------

    def _search(self, request: SearchRequest) -> None:
        """Search beside the passes that follow."""
        self.session.beside(partial(request.run, lambda: self.session.alive), self._answered)

    def _answered(self, answer: Answer | None, seconds: float) -> None:
        """Hand an answer in, and make a pass with it unless a command is about to start."""
        if not self.session.alive or self._memo is None or self._memo.living_search is None:
            return
        rest = timedelta(seconds=max(self.session.intervals.search, _REST * seconds))
        self._memo.living_search.answered(answer, self.clock.moment + rest)
        for observer in self.session.observers:
            observer.search_finished(answer, seconds)
        self._idle_until = None
        if self._polls:
            self._pass_after(0.0)

    def _next_change(self, decision: Decision) -> datetime | None:
        """When time alone may let a node take part again; at the latest after a while. None: at any time."""
        now = self.clock.moment
        living = None if self._memo is None else self._memo.living_search
        if living is not None and living.target is not None:
            return None
        moments = [now + timedelta(seconds=self.session.intervals.refresh)]
        moments += [until for until in self.session.state.nominations.values() if until > now]
        released = decision.stops.next_release(now)
        return min([*moments, *(moment for moment in (decision.next_opening, released) if moment is not None)])

    # -- commands ------------------------------------------------------------------------------------------------

    def _begin(self, commands: tuple[Command, ...]) -> None:
        """Start commands, once their nodes have been read from the API server."""
        if commands:
            nodes = sorted({name for command in commands for name in command.nodes})
            self.session.facts.read(nodes, partial(self._start, commands))
        else:
            self._started(any_command=False)

    def _start(self, commands: tuple[Command, ...], facts: FreshFacts) -> None:
        session = self.session
        if not session.alive:
            return
        rates = rates_left(self.store.but_pods(), session.settings.brakes, self.clock.earliest)
        started = False
        for command in commands:
            now = self.clock.earliest
            evicted = evictions_by_namespace(pod for name in command.nodes for pod in facts[name].pods)
            held = self._stopped(command, now) or rates.refusal(len(command.nodes), evicted)
            if held is not None:
                self._drop(command, held)
                continue
            try:
                self._refuse_news(command, facts, now)
                daemons = session.cluster_state.snapshot.daemons
                around, everywhere = self._around(command, facts), self.store.pods.listed()
                actions = start_command(command, around, now, session.execution, daemons, everywhere=everywhere)
            except NotStartedError as error:
                self._back_off(command, error.reason, now)
                continue
            started = True
            rates = rates.after(len(command.nodes), evicted)
            session.dropped = {name: known for name, known in session.dropped.items() if name not in command.nodes}
            for observer in session.observers:
                observer.command_started(command, command_id(command, now))
            self._destinations.started(command, actions)
            session.execute(actions, in_order=True)
            session.state = nominate(session.state, sorted(destinations(command)), now, session.execution)
        self._started(any_command=started)

    def _started(self, *, any_command: bool) -> None:
        self._backoff = self._poll / 2
        self._pass_after(_AFTER_A_COMMAND if any_command else self._poll)

    def _stopped(self, command: Command, now: datetime) -> Reason | None:
        """The brake that has taken hold of a command since it was decided."""
        snapshot, stops = self.session.cluster_state.snapshot, self.session.stops(now)
        kept_up = command.method is Method.DRIFT and command.replacements
        sources = set(command.nodes) if kept_up else {move.source for move in command.moves}
        for name in command.nodes:
            row = snapshot.nodes.rows.get(name)
            pool = "" if row is None else snapshot.nodes.get(row).pool
            stop = stops.of(pool, name, empty=name not in sources)
            if stop is not None:
                return stop.reason
        return None

    def _refuse_news(self, command: Command, facts: FreshFacts, now: datetime) -> None:
        """Refuse a command whose nodes are not what it was decided on, or when that cannot be known."""
        snapshot = self.session.cluster_state.snapshot
        for name in command.nodes:
            row = snapshot.nodes.rows.get(name)
            claim = None if row is None else snapshot.nodes.get(row).claim
            bounded = command.drain_bound is not None
            anyway = claim is not None and drains_anyway(command.cause, claim, bounded=bounded)
            known, fresh = self.session.pods_on(name), facts[name]
            reason = changed_since(name, known, fresh, now, cause=command.cause, drains_anyway=anyway)
            if reason is None and command.cause is Cause.UNHEALTHY:
                reason = healed(self.session.settings.repair, StateNode(fresh.node, claim), now)
            if reason is not None:
                raise NotStartedError(reason)

    def _around(self, command: Command, facts: FreshFacts) -> Objects:
        """The objects that a command is about."""
        snapshot = self.session.cluster_state.snapshot
        pods, everything = snapshot.pods, self.store.but_pods()
        moved = [pods.get(pods.rows[move.pod]) for move in command.moves if move.pod in pods.rows]
        here = [pod for name in command.nodes for pod in facts[name].pods if not pod.terminal]
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

    def _back_off(self, command: Command, reason: Reason, now: datetime) -> None:
        """Drop a command that cannot start, and leave its nodes alone for a while: it would be decided again."""
        session = self.session
        session.dropped = after_drop(session.dropped, command.nodes, reason, session.settings.brakes, now)
        self._drop(command, reason, session.dropped[command.nodes[0]].tries)

    def _drop(self, command: Command, reason: Reason, in_a_row: int = 1) -> None:
        for observer in self.session.observers:
            observer.command_dropped(command, reason, in_a_row)
