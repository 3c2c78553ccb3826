"""The controller's disruption: look, decide, look again a little later, begin."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.cluster.pod_table import NOWHERE
from karpool.controller.lifecycle_controller import LifecycleController
from karpool.controller.session import Session
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.live_context import LiveDecisionContext
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.revalidate import revalidate
from karpool.disruption.snapshot_diff import SnapshotDiff
from karpool.execution.start import NotStartedError, destinations, start_command
from karpool.execution.state import nominate, nominated
from karpool.execution.tickets import nodes_in_commands
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_AGAIN: Final = 1.0


class DisruptionController:
    """Makes a pass whenever the poll comes round and something may have changed since the last fruitless one."""

    def __init__(self, session: Session, lifecycle: LifecycleController) -> None:
        self.session = session
        self.lifecycle = lifecycle
        self.clock = session.clock
        self.store = session.store
        self.passes = 0
        self._poll = session.intervals.poll
        self._resting = self._poll / 2
        self._seen = -1
        self._believed_until: datetime | None = None
        self._living: LiveDecisionContext | None = None
        self._since: SnapshotDiff | None = None
        self._refusals = RefusalCache()
        self._changed: set[int] = set()

    def start(self) -> None:
        """Begin to look."""
        self.clock.after(self._poll, self._look)

    # -- passes --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if not self.session.alive:
            return
        believed = self._nothing_changed()
        commands = () if believed else self._decide()
        if not commands:
            self.clock.after(self._poll if believed else self._rest(), self._look)
        elif all(command.cause is Cause.DRIFTED for command in commands):
            self._begin(commands)
        else:
            wait = self.session.intervals.validation
            self.clock.after(wait, partial(self._validate, commands))

    def _rest(self) -> float:
        """How long to rest after a look that found nothing; longer each time."""
        self._resting = min(2 * self._resting, max(self._poll, self.session.intervals.patience))
        return self._resting

    def _nothing_changed(self) -> bool:
        until, seen = self._believed_until, self.session.cluster_state.opportunities
        return self._seen == seen and until is not None and self.clock.moment < until

    def _decide(self) -> tuple[Command, ...]:
        self.passes += 1
        for observer in self.session.observers:
            observer.pass_started()
        seen = self.session.cluster_state.opportunities
        with self._context() as context:
            look = DecisionPass(context, self._recalled(context))
            commands = look.decide()
            for observer in self.session.observers:
                observer.pass_finished(look, commands)
            self._believed_until = None if commands else self._next_opening(context)
        # Putting pods back is no change.
        self._seen = seen
        return commands

    def _validate(self, commands: tuple[Command, ...]) -> None:
        if not self.session.alive:
            return
        kept: list[Command] = []
        with self._context() as context:
            for command in commands:
                again = revalidate(command, context)
                if isinstance(again, Command):
                    kept.append(again)
                else:
                    self._dropped(command, again)
        self._begin(tuple(kept))

    @contextmanager
    def _context(self) -> Iterator[LiveDecisionContext]:
        """The cluster as it is now; pods that a situation seats elsewhere are put back."""
        session, now = self.session, self.clock.moment
        engine = session.engine()
        snapshot = engine.snapshot
        snapshot.objects = self.store.but_pods()
        if self._living is None or self._living.engine is not engine:
            self._living = LiveDecisionContext(snapshot, engine.catalog, engine, now=now, settings=session.settings)
            self._put_back(self._living)
        self._living.renew(
            now,
            session.pdb_source.pdbs(),
            guarded=self._guarded(),
            touched=self._touched(),
            in_command=nodes_in_commands(self.lifecycle.under_way()),
            nominated=nominated(session.state, self.store.claims.get, now),
        )
        self._changed |= self._living.changed
        try:
            yield self._living
        finally:
            self._put_back(self._living)

    def _recalled(self, context: LiveDecisionContext) -> RefusalCache:
        """What earlier passes refused and nothing since can have changed."""
        if self._since is None or self._since.context is not context:
            self._since, self._refusals = SnapshotDiff(context), RefusalCache()
        change = self._since.change(self._changed | context.changed)
        self._changed = set()
        if change is None:
            self._refusals = RefusalCache()
        else:
            self._refusals.forget(context, change)
        return self._refusals

    def _put_back(self, context: DecisionContext) -> None:
        for key in sorted(context.pending | context.leaving):
            self.session.cluster_state.restore_pod(key)

    def _touched(self) -> set[int]:
        """Rows of nodes that are not as they were at the last look."""
        cluster_state = self.session.cluster_state
        rows, cluster_state.changed_nodes = cluster_state.changed_nodes, set()
        return rows - {NOWHERE}

    def _guarded(self) -> set[int]:
        """Rows of nodes with pods whose budgets have shut since the last look."""
        cluster_state, pods = self.session.cluster_state, self.session.cluster_state.snapshot.pods
        budgets, cluster_state.closed_pdbs = cluster_state.closed_pdbs, set()
        covered = self.session.pdb_source.covered(budgets) if budgets else ()
        return {int(pods.node_of[pods.rows[key]]) for key in covered if key in pods.rows} - {NOWHERE}

    def _next_opening(self, context: LiveDecisionContext) -> datetime:
        """When the next node may take part again; at the latest after a while."""
        now = self.clock.moment
        moments = [now + timedelta(seconds=self.session.intervals.refresh)]
        moments += [until for until in self.session.state.nominations.values() if until > now]
        opening = context.next_opening()
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
                self._dropped(command, error.reason)
                continue
            for observer in session.observers:
                observer.command_started(command)
            session.execute(actions, in_order=True)
            session.state = nominate(session.state, sorted(destinations(command)), now, session.execution)
        self._resting = self._poll / 2
        self.clock.after(_AGAIN if commands else self._poll, self._look)

    def _around(self, command: Command) -> Objects:
        """The part of the cluster that a command is about."""
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

    def _dropped(self, command: Command, reason: Reason) -> None:
        for observer in self.session.observers:
            observer.command_dropped(command, reason)
