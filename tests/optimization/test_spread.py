"""What a bound relies on: where pods with rules about domains are after any commands."""

from hypothesis import given
from hypothesis import strategies as st


def _carried_out(counts: list[int], leaving: list[int], data: st.DataObject, skew: int = 1) -> list[int]:
    """Counts after a command that takes pods from these domains, each placed anew wherever the skew allows it."""
    counts = counts.copy()
    for domain in leaving:
        counts[domain] -= 1
    for _ in leaving:
        allowed = [domain for domain, count in enumerate(counts) if count + 1 - min(counts) <= skew]
        counts[data.draw(st.sampled_from(allowed))] += 1
    return counts


@given(st.data(), st.integers(1, 5), st.integers(0, 12))
def test_a_skew_of_1_keeps_itself_up_through_commands_of_any_kind(data: st.DataObject, domains: int, pods: int) -> None:
    counts = [pods // domains + (domain < pods % domains) for domain in range(domains)]
    for _ in range(data.draw(st.integers(1, 4))):
        present = [domain for domain, count in enumerate(counts) for _ in range(count)]
        leaving = data.draw(st.permutations(present))[: data.draw(st.integers(0, len(present)))]
        counts = _carried_out(counts, leaving, data)
        assert set(counts) <= {pods // domains, -(-pods // domains)}


@given(st.data(), st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 3))
def test_from_any_counts_a_domain_ends_with_no_more_than_it_had_or_than_the_skew_lets_come(
    data: st.DataObject, today: list[int], skew: int
) -> None:
    counts = today
    most = (sum(today) - skew) // len(today) + skew
    for _ in range(data.draw(st.integers(1, 4))):
        present = [domain for domain, count in enumerate(counts) for _ in range(count)]
        leaving = data.draw(st.permutations(present))[: data.draw(st.integers(0, len(present)))]
        counts = _carried_out(counts, leaving, data, skew)
        assert all(count <= max(before, most) for count, before in zip(counts, today, strict=True))


def test_a_skew_of_2_does_not_keep_itself_up() -> None:
    counts, skew = [1, 1, 3], 2
    counts[1] -= 1
    assert counts[0] + 1 - min(counts) <= skew
    counts[0] += 1
    assert max(counts) - min(counts) == skew + 1
