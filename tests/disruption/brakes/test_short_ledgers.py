"""A ledger always fits into an annotation: no count is lost, and what the harm check needs becomes coarser at most."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, ago
from tests.factories import pod

from karpool.disruption.brakes.ledger import COUNTED, Blame, LedgerEntry, Moved, disruption, read_ledger
from karpool.disruption.brakes.owned_pods import owner_key
from karpool.disruption.brakes.short_ledgers import LONGEST, with_entry
from karpool.model.annotations import AnnotationError
from karpool.model.pod import Pod

MINUTE = timedelta(minutes=1)


def entry(command: str = "c1", at: datetime = NOW, nodes: int = 1, **rest: object) -> LedgerEntry:
    return LedgerEntry(command=command, since=at, at=at, committed=True, nodes=nodes, **rest)  # type: ignore[arg-type]


def large(number: int, at: datetime, owners: int = 350) -> LedgerEntry:
    """An entry of some 13 KiB."""
    return entry(
        f"c{number:03}",
        at,
        nodes=10,
        owners={f"{number:04}{each:08}": Moved(1) for each in range(owners)},
        pods={f"namespace-of-the-team-with-the-number-{each:03}": 1 for each in range(100)},
    )


def ledger(*entries: LedgerEntry, now: datetime = NOW) -> tuple[LedgerEntry, ...]:
    """What is left of entries that are written one after the other."""
    text: str | None = None
    for each in entries:
        text = with_entry(text, each.command, each, now)
        assert text is not None
        assert len(text.encode()) <= LONGEST
    return read_ledger(text)


def test_one_entry_takes_the_place_of_another_and_none_leaves_nothing() -> None:
    text = with_entry(None, "c1", entry("c1"), NOW)
    text = with_entry(text, "c2", entry("c2"), NOW)
    text = with_entry(text, "c2", entry("c2", nodes=5), NOW)
    assert [(one.command, one.nodes) for one in read_ledger(text)] == [("c1", 1), ("c2", 5)]
    text = with_entry(text, "c1", None, NOW)
    assert with_entry(text, "c2", None, NOW) is None
    assert with_entry("[{]", "c2", None, NOW) == "[{]"


def workload(number: int, size: int) -> list[Pod]:
    space = f"namespace-of-a-team-with-a-long-name-{number:05}"
    return [pod(f"web{number}-{each}", namespace=space, node="a") for each in range(size)]


def test_one_command_that_moves_thousands_of_pods_of_as_many_controllers_fits() -> None:
    """Controllers and namespaces with the most pods are named; the others count."""
    few = workload(9999, 3)
    pods = [each for number in range(3000) for each in workload(number, 1)]
    whole = disruption("c1", "MultiNodeConsolidation", [f"node-{n}" for n in range(90)], [*pods, *few], NOW)
    (made,) = ledger(replace(whole, committed=True))
    assert (made.evictions, made.nodes) == (3003, 90)
    assert made.owners[str(owner_key(few[0]))] == (3, 0, 3)
    assert made.pods[few[0].metadata.namespace] == 3
    assert made.others == 3003 - sum(made.pods.values())
    assert made.evictions_of(pods[-1].metadata.namespace) >= 1
    assert len(made.owners) == 400


def test_commands_of_an_hour_fit_and_lose_neither_count_nor_controllers() -> None:
    written = [large(number, ago(minutes=59 - number)) for number in range(40)]
    kept = ledger(*written)
    assert sum(one.nodes for one in kept) == 400
    assert sum(one.evictions for one in kept) == 4000
    (folded, *others) = kept
    assert len(folded.owners) == 400
    assert folded.since == written[0].since
    assert [one.command for one in others] == [one.command for one in written[-len(others) :]]
    assert all(one.owners for one in others)


def test_what_is_folded_together_keeps_how_a_controller_was_before_the_first_move() -> None:
    own = "0123456789ab"
    first = replace(large(0, ago(minutes=50), 300), owners={own: Moved(2, 1, 9)})
    second = replace(large(1, ago(minutes=40), 300), owners={own: Moved(3, 2, 8)})
    kept = ledger(first, second, *(large(number, ago(minutes=30 - number), 350) for number in range(2, 12)))
    assert kept[0].owners[own] == (5, 1, 8)


def test_blame_is_not_lost_and_what_is_forgiven_is_no_longer_looked_after() -> None:
    blamed = replace(large(0, ago(minutes=58)), blame=Blame.BLAMED)
    forgiven = replace(large(1, ago(minutes=57)), blame=Blame.FORGIVEN)
    kept = ledger(blamed, forgiven, *(large(number, ago(minutes=57 - number)) for number in range(2, 40)))
    assert blamed in [replace(one, pods=dict(sorted(one.pods.items()))) for one in kept]
    assert not set(forgiven.owners).intersection(*(one.owners for one in kept))
    all_blamed = ledger(*(replace(large(n, ago(minutes=59 - n)), blame=Blame.BLAMED) for n in range(40)))
    assert {one.blame for one in all_blamed} == {Blame.BLAMED}
    assert sum(one.nodes for one in all_blamed) == 400


def test_what_counts_no_more_does_not_begin_to_again_when_it_is_folded() -> None:
    """The harm check may look after entries for longer than rates count them."""
    kept = ledger(*(large(number, NOW - COUNTED + (number - 10) * MINUTE) for number in range(20)))
    assert len(kept) < 20
    assert sum(one.nodes for one in kept if NOW - one.at < COUNTED) == 10 * 9


def test_commands_whose_nodes_still_go_stay_apart_so_that_they_find_their_entries() -> None:
    going = [large(number, ago(seconds=60 - number)) for number in range(20)]
    waiting = [replace(large(number, ago(minutes=30)), committed=False) for number in range(20, 30)]
    kept = ledger(*waiting, *going)
    assert {one.command for one in kept} == {one.command for one in (*waiting, *going)}
    assert [one.evictions for one in kept] == [100] * 30
    assert [bool(one.owners) for one in kept] == sorted(bool(one.owners) for one in kept)


def test_a_ledger_that_cannot_be_read_says_where() -> None:
    text = with_entry(None, "c1", entry("c1"), NOW)
    assert text is not None
    with pytest.raises(AnnotationError, match=r"\$\[1\]\.command"):
        read_ledger(text.removesuffix("]") + ', {"command": 1}]')
