"""Requirement algebra against brute force: every label state of a small universe, absence included."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpool.model.labels import WELL_KNOWN, ZONE
from karpool.model.requirements import NOTHING, OPERATORS, Requirement, Requirements, one_of, requirement

ABSENT = None
UNIVERSE = (ABSENT, "a", "b", "x-1", "-1", "0", "1", "2", "3", "4", "07")
NUMBERS = tuple(str(number) for number in range(5))

requirements = st.one_of(
    st.builds(
        requirement, st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from(UNIVERSE[1:]), min_size=1, max_size=4)
    ),
    st.builds(requirement, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        requirement,
        st.sampled_from(["Gt", "Gte", "Lt", "Lte"]),
        st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=1),
    ),
)


def states(column: Requirement) -> set[str | None]:
    return {state for state in UNIVERSE if (column.absent if state is ABSENT else column.has(state))}


def described(operator: str, values: tuple[str, ...]) -> set[str | None]:
    """What an operator means, without sets and bounds."""

    def holds(state: str | None) -> bool:
        match operator:
            case "In":
                return state in values
            case "NotIn":
                return state not in values
            case "Exists":
                return state is not None
            case "DoesNotExist":
                return state is None
        if state is None or not state.removeprefix("-").isdigit():
            return False
        compared = {"Gt": int.__gt__, "Gte": int.__ge__, "Lt": int.__lt__, "Lte": int.__le__}[operator]
        return compared(int(state), int(values[0]))

    return {state for state in UNIVERSE if holds(state)}


@pytest.mark.parametrize(("operator", "value"), list(product(OPERATORS, NUMBERS)))
def test_an_operator_allows_what_it_says(operator: str, value: str) -> None:
    assert states(requirement(operator, [value])) == described(operator, (value,))


@given(requirements, requirements)
def test_an_intersection_allows_what_both_allow(first: Requirement, second: Requirement) -> None:
    assert states(first.intersect(second)) == states(first) & states(second)


@given(requirements, requirements)
def test_intersection_is_commutative(first: Requirement, second: Requirement) -> None:
    assert first.intersect(second) == second.intersect(first)


@given(requirements, requirements, requirements)
def test_intersection_is_associative(first: Requirement, second: Requirement, third: Requirement) -> None:
    assert first.intersect(second).intersect(third) == first.intersect(second.intersect(third))


@given(requirements)
def test_intersecting_with_itself_changes_nothing(first: Requirement) -> None:
    assert first.intersect(first) == first


@given(requirements, requirements)
def test_requirements_overlap_when_their_intersection_is_satisfiable(first: Requirement, second: Requirement) -> None:
    assert first.overlaps(second) == second.overlaps(first) == first.intersect(second).satisfiable
    if states(first) & states(second):
        assert first.overlaps(second)


@given(st.lists(requirements, min_size=1, max_size=4))
def test_a_bounded_range_whose_values_are_all_excluded_is_empty(listed: list[Requirement]) -> None:
    range_of_two = requirement("Gte", ["1"]).intersect(requirement("Lte", ["2"]))
    both_out = range_of_two.intersect(requirement("NotIn", ["1", "2"]))
    for column in listed:
        both_out = both_out.intersect(column)
    assert not both_out.satisfiable


@given(st.lists(requirements, max_size=4), st.lists(requirements, max_size=4))
def test_collections_intersect_key_by_key(first: list[Requirement], second: list[Requirement]) -> None:
    keys = ("k1", "k2", "k1", "k3")
    left, right = Requirements(zip(keys, first, strict=False)), Requirements(zip(keys, second, strict=False))
    both = left.intersect(right)
    assert both == right.intersect(left)
    assert set(both) == set(left) | set(right)
    assert both.satisfiable == all(column.satisfiable for column in both.values())


def test_the_larger_number_of_values_wins() -> None:
    both = requirement("In", ["a", "b", "c"], 2).intersect(requirement("NotIn", ["a"], 3))
    assert both.min_values == 3


def test_more_than_the_largest_number_is_nothing() -> None:
    assert requirement("Gt", [str(2**63 - 1)]) == NOTHING
    assert not requirement("Gt", ["1"]).has("9" * 5000)


def test_old_names_of_labels_mean_the_new_ones() -> None:
    assert list(Requirements([("failure-domain.beta.kubernetes.io/zone", one_of("z1"))])) == [ZONE]


@pytest.mark.parametrize(("operator", "values"), [("Near", ["a"]), ("Gt", ["1", "2"]), ("Gt", ["a"]), ("Lt", [])])
def test_an_operator_with_wrong_values_is_refused(operator: str, values: list[str]) -> None:
    with pytest.raises(ValueError, match=r"unknown operator|needs exactly one whole number"):
        requirement(operator, values)


COLUMNS = {
    "absent": None,
    "Exists": requirement("Exists"),
    "DoesNotExist": requirement("DoesNotExist"),
    "In A": one_of("A"),
    "NotIn A": requirement("NotIn", ["A"]),
    "Gt 1": requirement("Gt", ["1"]),
}
LENIENT = {
    "absent": (True, True, True, True, True, True),
    "Exists": (True, True, False, True, True, True),
    "DoesNotExist": (True, False, True, False, True, False),
    "In A": (True, True, False, True, False, False),
    "NotIn A": (True, True, True, False, True, True),
    "Gt 1": (True, True, False, False, True, True),
}
STRICT = {**LENIENT, "absent": (True, False, True, False, True, False)}


@pytest.mark.parametrize(("node_has", "pod_asks"), list(product(COLUMNS, COLUMNS)))
@pytest.mark.parametrize("lenient", [True, False])
def test_compatibility_of_a_node_with_a_pod(node_has: str, pod_asks: str, *, lenient: bool) -> None:
    node, pod = (
        Requirements() if column is None else Requirements([(ZONE, column)])
        for column in (COLUMNS[node_has], COLUMNS[pod_asks])
    )
    expected = (LENIENT if lenient else STRICT)[node_has][list(COLUMNS).index(pod_asks)]
    assert (node.conflict(pod, undefined=WELL_KNOWN if lenient else frozenset()) is None) is expected


@given(requirements, requirements)
def test_keys_that_only_one_side_defines_are_free_when_sides_meet(first: Requirement, second: Requirement) -> None:
    assert Requirements([("k1", first)]).meets(Requirements([("k2", second)]))
    assert Requirements([("k1", first)]).meets(Requirements([("k1", second)])) == first.overlaps(second)


def test_an_empty_value_is_shown_as_one() -> None:
    assert str(one_of("", "a")) == 'In ["", a]'
