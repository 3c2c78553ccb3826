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


def states(wanted: Requirement) -> set[str | None]:
    return {state for state in UNIVERSE if (wanted.absent if state is ABSENT else wanted.has(state))}


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
def test_an_intersection_allows_what_both_allow(one: Requirement, other: Requirement) -> None:
    assert states(one.intersect(other)) == states(one) & states(other)


@given(requirements, requirements)
def test_intersection_is_commutative(one: Requirement, other: Requirement) -> None:
    assert one.intersect(other) == other.intersect(one)


@given(requirements, requirements, requirements)
def test_intersection_is_associative(one: Requirement, two: Requirement, three: Requirement) -> None:
    assert one.intersect(two).intersect(three) == one.intersect(two.intersect(three))


@given(requirements)
def test_intersecting_with_itself_changes_nothing(one: Requirement) -> None:
    assert one.intersect(one) == one


@given(requirements, requirements)
def test_requirements_overlap_when_their_intersection_is_satisfiable(one: Requirement, other: Requirement) -> None:
    assert one.overlaps(other) == other.overlaps(one) == one.intersect(other).satisfiable
    if states(one) & states(other):
        assert one.overlaps(other)


@given(st.lists(requirements, min_size=1, max_size=4))
def test_a_bounded_range_whose_values_are_all_excluded_is_empty(listed: list[Requirement]) -> None:
    range_of_two = requirement("Gte", ["1"]).intersect(requirement("Lte", ["2"]))
    both_out = range_of_two.intersect(requirement("NotIn", ["1", "2"]))
    for wanted in listed:
        both_out = both_out.intersect(wanted)
    assert not both_out.satisfiable


@given(st.lists(requirements, max_size=4), st.lists(requirements, max_size=4))
def test_collections_intersect_key_by_key(one: list[Requirement], other: list[Requirement]) -> None:
    keys = ("k1", "k2", "k1", "k3")
    left, right = Requirements(zip(keys, one, strict=False)), Requirements(zip(keys, other, strict=False))
    both = left.intersect(right)
    assert both == right.intersect(left)
    assert set(both) == set(left) | set(right)
    assert both.satisfiable == all(wanted.satisfiable for wanted in both.values())


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


@pytest.mark.parametrize(("held", "asked"), list(product(COLUMNS, COLUMNS)))
@pytest.mark.parametrize("lenient", [True, False])
def test_compatibility_of_a_node_with_a_pod(held: str, asked: str, *, lenient: bool) -> None:
    node, pod = (
        Requirements() if wanted is None else Requirements([(ZONE, wanted)])
        for wanted in (COLUMNS[held], COLUMNS[asked])
    )
    expected = (LENIENT if lenient else STRICT)[held][list(COLUMNS).index(asked)]
    assert (node.conflict(pod, undefined=WELL_KNOWN if lenient else frozenset()) is None) is expected


@given(requirements, requirements)
def test_keys_that_only_one_side_defines_are_free_when_sides_meet(one: Requirement, other: Requirement) -> None:
    assert Requirements([("k1", one)]).meets(Requirements([("k2", other)]))
    assert Requirements([("k1", one)]).meets(Requirements([("k1", other)])) == one.overlaps(other)
