"""Harm: pods that a command moved and that do not run again, or whose eviction is refused for long.

What is seen of pods is told apart from what is done about it: `harmed_by_moves` looks at pods, and the brake reads only
the annotation of a NodePool that says what was found. It outlives a restart, and a person can remove it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from karpool.disruption.brakes.ledger import Blame, LedgerEntry
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stamps import refuse_ahead
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.brakes.wellness import unwell, unwell_since
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import HARM
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.duration import Duration
from karpool.wire.objects import Timestamp, Wire
from karpool.wire.problems import Flaw, one_line

_WATCHED: Final = timedelta(hours=1)
"""How long after the last pod of a move left its pods are looked after, at least."""
_SEVERAL_POOLS: Final = 2
_SHOWN: Final = 3


class HarmedPod(NamedTuple):
    """A pod that a command has harmed, and what is wrong with it."""

    command: str
    pod: str
    why: str


class Harm(Wire):
    """What was found in a pool: how many pods, which for example, the command with most of them, and since when."""

    command: str
    at: Timestamp
    pods: int
    examples: tuple[str, ...] = ()
    method: str = ""
    nodes: str = ""
    commands: tuple[str, ...] = ()
    """All commands that are to blame."""
    well_since: Timestamp | None = None
    """Since when all pods are well."""

    def written(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(self).decode()


def harm_of(pool: NodePool) -> Harm | None:
    """What a pool says about harm; raises an AnnotationError if that cannot be read."""
    text = pool.metadata.annotations.get(HARM)
    return None if text is None else _read(text)


@lru_cache(maxsize=64)
def _read(text: str) -> Harm:
    try:
        return msgspec.json.decode(text, type=Harm)
    except ValueError as error:
        raise AnnotationError([Flaw(annotation_path(HARM), "Annotation", str(error)[:200])]) from None


# -- what is seen of pods ----------------------------------------------------------------------------------------------


def watched_for(after: timedelta) -> timedelta:
    """How long pods are looked after from when they moved, if they may take so long to run."""
    return max(_WATCHED, 2 * after)


def watched(entry: LedgerEntry, after: timedelta, now: datetime) -> bool:
    """Whether pods of a command are still looked after; those that left last moved when it was last seen going."""
    if not entry.committed or entry.blame == Blame.FORGIVEN:
        return False
    return entry.blame == Blame.BLAMED or now - entry.at < watched_for(after)


def harmed_by_moves(
    entries: Iterable[tuple[str, LedgerEntry]], pods: OwnedPods, after: timedelta, now: datetime
) -> Iterator[tuple[str, HarmedPod]]:
    """By pool: pods that took the place of moved ones and have not been well for long.

    The first pods that a controller makes after a move take the place of those that moved. They count as far as more
    pods of their controller are unwell than before the first of its moves: one of two replicas may never be ready by
    design, and whichever it is, that is not the doing of a move.
    """
    kept = sorted(((pool, one) for pool, one in entries if one.owners and watched(one, after, now)), key=_since)
    before: dict[str, int] = {}
    for _, entry in kept:
        for key, then in entry.owners.items():
            before.setdefault(key, then.unwell)
    bad = {key: {pod.key for pod in _taking_place(pods.unwell(key)) if _long_unwell(pod, after, now)} for key in before}
    more = {key: count for key, found in bad.items() if (count := len(found) - before[key]) > 0}
    made = {key: sorted(_taking_place(pods.of(key)), key=lambda pod: (_created(pod), pod.key)) for key in more}
    taken: set[str] = set()
    for pool, entry in kept:
        for key, moved in entry.owners.items():
            after_move = (pod for pod in made.get(key, ()) if _created(pod) >= entry.since and pod.key not in taken)
            for pod in list(islice(after_move, moved.pods)):
                taken.add(pod.key)
                if pod.key in bad[key] and more[key] > 0:
                    more[key] -= 1
                    yield pool, HarmedPod(entry.command, pod.key, _said(pod, now))


def _since(one: tuple[str, LedgerEntry]) -> datetime:
    return one[1].since


def _taking_place(pods: Mapping[str, Pod]) -> list[Pod]:
    """Pods that may have taken the place of others."""
    return [pod for pod in pods.values() if pod.metadata.creation_timestamp is not None and not _passes_by(pod)]


def _created(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC)


def _passes_by(pod: Pod) -> bool:
    """Whether a pod takes nobody's place: it goes, another one follows it, or nobody knows how it is."""
    return pod.terminating or pod.status.phase == "Failed" or bool(pod.unreadable)


def _long_unwell(pod: Pod, after: timedelta, now: datetime) -> bool:
    if unwell(pod) is None:
        return False
    since = unwell_since(pod)
    return since is not None and now - since >= after


def _said(pod: Pod, now: datetime) -> str:
    since = unwell_since(pod)
    return f"{unwell(pod)} since {clock(since, now)}" if since is not None else f"{unwell(pod)}"


def found(entries: Sequence[LedgerEntry], harmed: Sequence[HarmedPod], known: Harm | None, now: datetime) -> Harm:
    """What to write on a pool when pods of it are harmed."""
    counts: dict[str, int] = {}
    for pod in harmed:
        counts[pod.command] = counts.get(pod.command, 0) + 1
    worst = max(sorted(counts), key=counts.__getitem__)
    entry = next((one for one in entries if one.command == worst), None)
    return Harm(
        command=worst,
        at=now.replace(microsecond=0) if known is None else known.at,
        pods=len(harmed),
        examples=tuple(one_line(f"{pod.pod} {pod.why}") for pod in harmed[:_SHOWN]),
        method="" if entry is None else entry.method,
        nodes="" if entry is None else entry.names,
        commands=tuple(sorted({*counts, *(() if known is None else known.commands)})),
    )


# -- the brake ---------------------------------------------------------------------------------------------------------


def harms(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop for each pool that has done harm, and one of everything if several have, or if there is much of it."""
    if not settings.harmed_pods:
        return
    known: dict[str, Harm] = {}
    unreadable = []
    for pool in objects.node_pools:
        try:
            harm = harm_of(pool)
            refuse_ahead(HARM, now, *(() if harm is None else (harm.at, harm.well_since)))
        except AnnotationError as problem:
            message = f"{problem}; nothing is disrupted until the annotation is removed"
            unreadable.append(Stop(ReasonCode.HARM_INVALID, message, f"NodePool {pool.name}", pool.name, halts=True))
            continue
        if harm is not None:
            known[pool.name] = harm
    pods = sum(harm.pods for harm in known.values())
    if len(known) >= _SEVERAL_POOLS or pods >= settings.harmed_pods_everywhere:
        told = "; ".join(f"NodePool {name}: {_sentence(harm, now)}" for name, harm in sorted(known.items())[:_SHOWN])
        latest = max(harm.at for harm in known.values())
        message = f"{pods} pods do not run since they were moved: {told}. {_release(latest, settings, now)}"
        yield Stop(ReasonCode.HARM_DONE, message, "Cluster", halts=True)
    for name, harm in sorted(known.items()):
        message = f"is stopped: {_sentence(harm, now)}. {_release(harm.at, settings, now)}"
        yield Stop(ReasonCode.HARM_DONE, message, f"NodePool {name}", name, _until(harm, settings), halts=True)
    yield from unreadable


def _until(harm: Harm, settings: BrakeSettings) -> datetime:
    last = harm.at + settings.longest_harm
    return last if harm.well_since is None else min(last, harm.well_since + settings.harm_cool_down)


def _sentence(harm: Harm, now: datetime) -> str:
    more = "" if harm.pods <= len(harm.examples) else f" and {harm.pods - len(harm.examples)} more"
    whose = f" ({harm.method} of {harm.nodes})" if harm.nodes else ""
    well = "" if harm.well_since is None else f"; all run since {clock(harm.well_since, now)}"
    return f"command {harm.command}{whose} has done harm: {', '.join(harm.examples)}{more}{well}"


def _release(at: datetime, settings: BrakeSettings, now: datetime) -> str:
    length = Duration(settings.harm_cool_down // timedelta(microseconds=1) * 1000)
    last = clock(at + settings.longest_harm, now)
    return f"It goes on when all of them have run for {length}, when the annotation {HARM} is removed, or at {last}"
