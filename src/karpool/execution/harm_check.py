"""The harm check: what is written on pools when pods that commands moved do not run, and when they run again."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpool.disruption.brakes.harm import Harm, HarmedPod, found, harm_of, watched_for
from karpool.disruption.brakes.ledger import COUNTED, Blame, LedgerEntry, ledger_of
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
            entries = ledger_of(pool)
            old = [one for one in entries if one.command not in under_way and _over(one, settings, now)]
            yield from (NoteDisruption(pool.name, entry.command, None) for entry in old)
            yield from _judge(pool, harmed.get(pool.name, ()), settings, now)
        except AnnotationError:
            continue  # brakes say so, and only a person can tell what was meant


def _over(entry: LedgerEntry, settings: BrakeSettings, now: datetime) -> bool:
    """Whether nobody needs an entry any more: neither rates nor the harm check, or its command never began."""
    if not entry.committed:
        return now - entry.at >= _STARTS_WITHIN
    if settings.harmed_pods and entry.blame == Blame.BLAMED:
        return False
    return now - entry.at >= (max(COUNTED, watched_for(settings.harm_after)) if settings.harmed_pods else COUNTED)


def _judge(pool: NodePool, harmed: Sequence[HarmedPod], settings: BrakeSettings, now: datetime) -> Iterator[Action]:
    entries, known = ledger_of(pool), harm_of(pool)
    if not settings.harmed_pods:
        # The check is off: what it found once is not looked after by anybody.
        if known is not None:
            yield Annotate("NodePool", pool.name, HARM, None)
        return
    of_command = {entry.command: entry for entry in entries}
    blamed = {entry.command for entry in entries if entry.blame == Blame.BLAMED}
    forgiven = {entry.command for entry in entries if entry.blame == Blame.FORGIVEN}
    if known is None:
        # A person has removed what was found: nothing of it is held against these commands any more.
        yield from _with_blame(pool, of_command, blamed, Blame.FORGIVEN, now)
        forgiven |= blamed
    counted = [pod for pod in harmed if pod.command not in forgiven]
    if known is not None and _lets_go(known, counted, settings, now):
        yield Annotate("NodePool", pool.name, HARM, None)
        yield from _with_blame(pool, of_command, blamed.union(pod.command for pod in counted), Blame.FORGIVEN, now)
    elif counted and (known is not None or len(counted) >= settings.harmed_pods):
        harm = found(entries, counted, known, now)
        if harm != known:
            yield Annotate("NodePool", pool.name, HARM, harm.written())
        yield from _with_blame(pool, of_command, set(harm.commands) - blamed - forgiven, Blame.BLAMED, now)
    elif known is not None and not counted and known.well_since is None:
        yield Annotate("NodePool", pool.name, HARM, replace(known, well_since=now.replace(microsecond=0)).written())


def _lets_go(known: Harm, counted: Sequence[HarmedPod], settings: BrakeSettings, now: datetime) -> bool:
    """Whether all pods have been well for long enough, or the pool has been stopped for as long as it may be."""
    well = not counted and known.well_since is not None and now - known.well_since >= settings.harm_cool_down
    return well or now - known.at >= settings.longest_harm


def _with_blame(
    pool: NodePool, entries: Mapping[str, LedgerEntry], commands: Collection[str], blame: Blame, now: datetime
) -> Iterator[NoteDisruption]:
    for command in sorted(commands):
        entry = entries.get(command) or LedgerEntry(command=command, since=now, at=now, committed=True)
        yield NoteDisruption(pool.name, command, replace(entry, blame=blame))
