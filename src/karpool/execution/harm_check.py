"""The harm check: what is written on pools when pods that commands moved do not run, and when they run again."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpool.disruption.brakes.harm import HarmedPod, found, harm_of
from karpool.disruption.brakes.ledger import Blame, LedgerEntry, ledger_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.execution.actions import Action, Annotate, NoteDisruption
from karpool.model.annotations import AnnotationError
from karpool.model.labels import HARM
from karpool.model.nodepool import NodePool

_STARTS_WITHIN: Final = timedelta(minutes=1)
"""How long after its entry a command may take to mark its nodes."""


def judge_pools(
    pools: Iterable[NodePool],
    harmed: Mapping[str, Sequence[HarmedPod]],
    under_way: Collection[str],
    settings: BrakeSettings,
    now: datetime,
) -> Iterator[Action]:
    """What to write on pools; `harmed`: by pool; `under_way`: the commands whose nodes are not gone yet."""
    for pool in pools:
        try:
            entries, _ = ledger_of(pool), harm_of(pool)
        except AnnotationError:
            continue  # brakes say so, and only a person can tell what was meant
        for entry in entries:
            if not entry.committed and entry.command not in under_way and now - entry.at >= _STARTS_WITHIN:
                yield NoteDisruption(pool.name, entry.command, None)
        yield from _judge(pool, harmed.get(pool.name, ()), settings, now)


def _judge(pool: NodePool, harmed: Sequence[HarmedPod], settings: BrakeSettings, now: datetime) -> Iterator[Action]:
    entries, known = ledger_of(pool), harm_of(pool)
    forgiven = {entry.command for entry in entries if entry.blame == Blame.FORGIVEN}
    blamed = [entry for entry in entries if entry.blame == Blame.BLAMED]
    if known is None:
        # A person has removed what was found: nothing of it is held against these commands any more.
        yield from (_with_blame(pool, entry, Blame.FORGIVEN) for entry in blamed)
        forgiven |= {entry.command for entry in blamed}
    counted = [pod for pod in harmed if pod.command not in forgiven]
    if counted and (known is not None or len(counted) >= settings.harmed_pods):
        harm = found(entries, counted, known, now)
        if harm != known:
            yield Annotate("NodePool", pool.name, HARM, harm.written())
        of_command = {entry.command: entry for entry in entries}
        for command in harm.commands:
            entry = of_command.get(command) or LedgerEntry(command=command, since=now, at=now, committed=True)
            if entry.blame == Blame.NONE:
                yield _with_blame(pool, entry, Blame.BLAMED)
    elif known is not None and known.well_since is None:
        yield Annotate("NodePool", pool.name, HARM, replace(known, well_since=now.replace(microsecond=0)).written())
    elif known is not None and known.well_since is not None and now - known.well_since >= settings.harm_cool_down:
        yield Annotate("NodePool", pool.name, HARM, None)
        yield from (_with_blame(pool, entry, Blame.FORGIVEN) for entry in blamed)


def _with_blame(pool: NodePool, entry: LedgerEntry, blame: Blame) -> NoteDisruption:
    return NoteDisruption(pool.name, entry.command, replace(entry, blame=blame))
