"""The controller's disruption: decide, decide again a little later, start the command.

While commands wait for that, others are decided as if these had started, so that they run side by side.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.cluster.nodes import StateNode
from karpool.controller.decided_commands import DecidedCommands, Round
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
from karpool.disruption.settings import GLOBAL, Scoring
from karpool.execution.commands import drains_anyway
from karpool.execution.fresh_facts import FreshFacts, changed_since
from karpool.execution.start import NotStartedError, destinations, start_command
from karpool.execution.state import nominate, nominated
from karpool.execution.steering import steer
from karpool.execution.tickets import awaited_nodes, coming_replacements, nodes_in_commands, waiting_replacements
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_AFTER_A_COMMAND: Final = 1.0
_GATHERED: Final = 1 / 3
"""For how much of the time until they are decided again commands are gathered."""
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
        self._decided = DecidedCommands(session)
        self._round: Round | None = None
        """To which the commands of the next pass belong, if it finds any."""

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
            self._round = None
            self._pass_after(self._poll if idle else self._next_backoff())
            return
        if all(command.cause in (Cause.DRIFTED, Cause.UNHEALTHY) for command in commands):
            alone = Round(self.clock.earliest)
            self._decided.add(commands, alone, alone.began)
            self._begin(alone)
        else:
            self._gather(commands)
            self._pass_after(0.0)

    def _gather(self, commands: tuple[Command, ...]) -> None:
        """Add commands to the round, which is decided again some time after the last of them."""
        now, intervals = self.clock.earliest, self.session.intervals
        if self._round is None or now - self._round.began > timedelta(seconds=intervals.validation * _GATHERED):
            self._round = Round(now)
        self._decided.add(commands, self._round, now)
        self.clock.after(intervals.validation, partial(self._validate, self._round, len(self._round.commands)))

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
        engine = session.engine()
        with self._decided.ahead() as ahead:
            decision = decide(
                engine,
                ahead.of(self.policies(now)),
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
        self._steer(decision.memo)
        return decision.commands

    def _steer(self, memo: Memo) -> None:
        """Ask pods to stay away from nodes that the target removes later, if a scheduler is foreseen that listens."""
        living, foreseen = memo.living_search, self.session.settings.scheduler
        leaving = living.leaving if living is not None and foreseen is not Scoring.ANY else ()
        if leaving or self.session.cluster_state.avoided.any():
            self.session.execute(steer(self.store.nodes, leaving))

    def _validate(self, decided: Round, size: int) -> None:
        """Decide the commands of a round again, each beside all others, unless some have been added since."""
        if not self.session.alive or len(decided.commands) != size:
            return
        self._round = None if self._round is decided else self._round
        now, engine = self.clock.earliest, self.session.engine()
        policies, refused = self.policies(now), list[tuple[Command, Reason]]()
        with self._decided.ahead() as ahead:
            for number, command in list(decided.commands.items()):
                named = self._destinations.renamed(command)
                (again,) = decide_again((named,), engine, ahead.of(policies, but=number), now, self._memo)
                if isinstance(again, Command):
                    self._decided.again(number, again, decided)
                else:
                    self._decided.drop(number, decided)
                    refused.append((command, again))
        for command, reason in refused:
            self._drop(command, reason)
        self._begin(decided)

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
            coming=frozenset(coming_replacements(under_way)) if searched else frozenset(),
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

    def _begin(self, decided: Round) -> None:
        """Start the commands of a round, once their nodes have been read from the API server."""
        if decided.commands:
            self.session.facts.read(decided.nodes, partial(self._start, decided))
        else:
            self._started(decided, any_command=False)

    def _start(self, decided: Round, facts: FreshFacts) -> None:
        session = self.session
        if not session.alive:
            return
        rates = rates_left(self.store.but_pods(), session.settings.brakes, self.clock.earliest)
        started = False
        for number, command in list(decided.commands.items()):
            now, identity = self.clock.earliest, self._decided.identity(number)
            evicted = evictions_by_namespace(pod for name in command.nodes for pod in facts[name].pods)
            held = self._stopped(command, now) or rates.refusal(len(command.nodes), evicted)
            if held is not None:
                self._decided.drop(number, decided)
                self._drop(command, held)
                continue
            try:
                coming = self._coming()
                self._refuse_lost(command, coming)
                self._refuse_news(command, facts, now)
                daemons = session.cluster_state.snapshot.daemons
                around = self._around(command, facts)
                actions = start_command(
                    command,
                    around,
                    now,
                    session.execution,
                    daemons,
                    everywhere=self.lifecycle.workloads.owned,
                    identity=identity,
                    coming=coming,
                )
            except NotStartedError as error:
                self._decided.drop(number, decided)
                self._back_off(command, error.reason, now)
                continue
            started = True
            rates = rates.after(len(command.nodes), evicted)
            session.dropped = {name: known for name, known in session.dropped.items() if name not in command.nodes}
            for observer in session.observers:
                observer.command_started(command, identity)
            self._destinations.started(command, actions)
            session.execute(actions, in_order=True)
            session.state = nominate(session.state, sorted(destinations(command)), now, session.execution)
        self._started(decided, any_command=started)

    def _started(self, decided: Round, *, any_command: bool) -> None:
        """Go on without a round: its commands have started, or have been dropped, which lets others have their room."""
        self._decided.end(decided)
        self._backoff, self._idle_until = self._poll / 2, None
        if any_command or not self._polls:
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

    def _coming(self) -> dict[str, str]:
        """By name of a node that replaces others and is no more than expected: its NodeClaim."""
        decided = {name: name for name in self._decided.coming()}
        return {**coming_replacements(self.lifecycle.under_way()), **decided}

    def _refuse_lost(self, command: Command, coming: Mapping[str, str]) -> None:
        """Refuse a command whose pods go to a node that is not there, and will not come."""
        there = self.session.cluster_state.snapshot.nodes.rows
        for name in sorted(destinations(command)):
            if name not in there and name not in coming:
                raise NotStartedError(
                    Reason("NodeGone", "which pods were to move to, is no longer there", f"Node {name}")
                )

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
