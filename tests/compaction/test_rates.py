"""How many nodes the compactor drains, and pods it evicts, within an hour; over restarts, because a ledger has it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace as changed
from tests.compaction.clusters import IN_PROGRESS, NOW, ago, cluster, config, draining, pool_config, pool_node
from tests.factories import namespace, pod

from karpool.compaction.actions import SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.confirm import without_starts
from karpool.compaction.explain import explain
from karpool.compaction.rates import NO_LEDGER, Ledger, ledger_with
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.disruption.brakes.ledger import COUNTED, LedgerEntry, read_ledger
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.labels import MAX_EVICTIONS
from karpool.model.workloads import Namespace

ROOM = pool_node("room", pods=["100m"], mark=None, pool="large", cpu="64")
SMALL = pool_node("a", pods=["100m"])
CONFIG = config(main=pool_config(required=0, max_in_progress=9), other=pool_config(required=0))


def rated(**rates: int) -> CompactionSettings:
    return replace(DEFAULTS, brakes=BrakeSettings(**rates))


def drained(at: datetime, **pods: int) -> LedgerEntry:
    return LedgerEntry(command=f"{at}", since=at, at=at, committed=True, nodes=1, pods=pods)


def ledger(*entries: LedgerEntry) -> Ledger:
    return Ledger(ledger_with(None, entries, NOW))


def step(
    *nodes: object,
    settings: CompactionSettings,
    known: Ledger = NO_LEDGER,
    spaces: tuple[Namespace, ...] = (),
    now: datetime = NOW,
) -> CompactionStep:
    objects = cluster((*nodes, ROOM), namespaces=spaces)  # type: ignore[arg-type]
    return advance(objects, CONFIG, now, settings, ledger=known)


def limited(name: str, text: str) -> Namespace:
    made = namespace(name)
    return changed(made, metadata=changed(made.metadata, annotations={MAX_EVICTIONS: text}))


def begun(taken: CompactionStep) -> list[str]:
    return [action.node for action in taken.actions if isinstance(action, SetNodeState) and action.unschedulable]


def reasons(taken: CompactionStep, name: str) -> list[str]:
    return [reason.code for verdict in taken.decision.nodes if verdict.view.name == name for reason in verdict.reasons]


def test_when_as_many_nodes_went_as_an_hour_allows_none_starts_and_it_says_when_there_is_room() -> None:
    known = ledger(drained(ago(minutes=40)), drained(ago(minutes=10)))
    taken = step(SMALL, settings=rated(most_nodes_per_hour=2), known=known)
    assert begun(taken) == []
    assert reasons(taken, "a") == ["RateReached"]
    told = explain(cluster((SMALL, ROOM)), CONFIG, NOW, "a", rated(most_nodes_per_hour=2), ledger=known)
    (reason,) = told.reasons
    assert "there is room at 12:21 UTC" in reason.message
    assert begun(step(SMALL, settings=rated(most_nodes_per_hour=3), known=known)) == ["a"]
    assert begun(step(SMALL, settings=rated(most_nodes_per_hour=2), known=known, now=ago(minutes=-21))) == ["a"]


def test_pools_that_start_in_one_step_count_together() -> None:
    other = pool_node("z", pods=["100m"], pool="other")
    assert begun(step(SMALL, other, settings=DEFAULTS)) == ["a", "z"]
    taken = step(SMALL, other, settings=rated(most_nodes_per_hour=1))
    assert begun(taken) == ["a"]
    assert reasons(taken, "z") == ["RateReached"]


def test_a_node_with_fewer_pods_goes_where_the_first_would_evict_too_many() -> None:
    nodes = (pool_node("a", pods=["300m"]), pool_node("b", pods=["50m", "50m", "50m"]))
    assert begun(step(*nodes, settings=DEFAULTS)) == ["b"]
    taken = step(*nodes, settings=rated(most_evictions_per_hour=2))
    assert begun(taken) == ["a"]
    assert reasons(taken, "b") == ["RateReached"]


def test_pods_of_a_namespace_have_a_limit_of_their_own() -> None:
    shop = pool_node("a", pods=[pod(f"web-{number}", namespace="shop", cpu="50m", node="a") for number in range(2)])
    known = ledger(drained(ago(minutes=5), shop=3))
    assert reasons(step(shop, settings=DEFAULTS, known=known, spaces=(limited("shop", "4"),)), "a") == ["RateReached"]
    assert begun(step(shop, settings=DEFAULTS, known=known, spaces=(limited("shop", "5"),))) == ["a"]
    assert reasons(step(shop, settings=DEFAULTS, spaces=(limited("shop", "few"),)), "a") == ["RateInvalid"]


@pytest.mark.parametrize("known", [Ledger("{"), Ledger(problem="is forbidden")])
def test_without_knowing_what_was_drained_nothing_starts(known: Ledger) -> None:
    taken = step(SMALL, settings=rated(most_nodes_per_hour=100), known=known)
    assert begun(taken) == []
    assert reasons(taken, "a") == ["RateInvalid"]
    assert begun(step(SMALL, settings=DEFAULTS, known=known)) == ["a"]


def test_a_limit_takes_no_drain_back() -> None:
    taken = step(draining("a", pods=["100m"]), settings=rated(most_nodes_per_hour=0))
    assert taken.actions
    assert not any(isinstance(action, SetNodeState) and action.unschedulable is False for action in taken.actions)


def test_a_drain_is_in_the_ledger_from_its_start_and_counts_until_an_hour_after_its_end() -> None:
    settings = rated(most_nodes_per_hour=1)
    taken = step(pool_node("b", pods=["200m", "200m", "200m"]), settings=settings)
    (entry,) = taken.entries.values()
    assert (entry.nodes, entry.pods, entry.names, entry.at) == (1, {"default": 3}, "b", NOW)
    text = ledger_with(None, taken.entries.values(), NOW)
    # The next process sees the cordoned node, and the ledger; one pod has not left yet.
    later = NOW + timedelta(minutes=8)
    busy = draining("b", mark=replace(IN_PROGRESS, updated=NOW), pods=["200m"])
    again = step(busy, pool_node("c"), settings=settings, known=Ledger(text), now=later)
    assert begun(again) == []
    assert reasons(again, "c") == ["RateReached"]
    (renewed,) = again.entries.values()
    assert renewed == changed(entry, at=later)
    text = ledger_with(text, again.entries.values(), later)
    assert [known.at for known in read_ledger(text)] == [later]
    end = later + COUNTED
    assert begun(step(pool_node("c"), settings=settings, known=Ledger(text), now=end - timedelta(seconds=1))) == []
    assert begun(step(pool_node("c"), settings=settings, known=Ledger(text), now=end)) == ["c"]
    assert ledger_with(text, (), end) == "[]"


def test_without_rates_no_ledger_is_kept() -> None:
    assert step(SMALL, settings=DEFAULTS).entries == {}


def test_a_start_that_cannot_be_noted_is_left_out_whole() -> None:
    taken = step(SMALL, draining("d", pods=["100m"], pool="other"), settings=rated(most_nodes_per_hour=5))
    assert begun(taken) == ["a"]
    rest = without_starts(taken.actions)
    assert rest
    assert not [action for action in rest if getattr(action, "node", getattr(action, "name", "")) == "a"]
