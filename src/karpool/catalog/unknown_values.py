"""Values of labels that no instance type has: misspelt, most likely."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from karpool.catalog.instance_types import Catalog
from karpool.model.requirements import Requirement
from karpool.wire.problems import closest

_MOST_NAMED: Final = 8
FAMILY_LABELS: Final = ("karpenter.k8s.aws/instance-family", "karpenter.kwok.sh/instance-family")


class UnknownValue(NamedTuple):
    """A value that no type has, and the one that was probably meant; empty if none is close."""

    value: str
    meant: str

    def __str__(self) -> str:
        return f"{self.value} (did you mean {self.meant}?)" if self.meant else self.value


def known_values(catalog: Catalog, keys: Collection[str]) -> frozenset[str] | None:
    """The values that types have of any of these labels; None if some type may have any value."""
    known = list(_known(catalog, keys))
    return None if any(one.complement for one in known) else frozenset().union(*(one.values for one in known))


def unknown_values(catalog: Catalog, keys: Collection[str], wanted: Requirement) -> tuple[UnknownValue, ...]:
    """The values that a requirement on these labels names, and no type has."""
    known = known_values(catalog, keys)
    if known is None:
        return ()
    ordered = sorted(known)
    return tuple(UnknownValue(value, closest(value, ordered)) for value in sorted(wanted.values - known))


def families_among(catalog: Catalog, values: Collection[str]) -> tuple[str, str] | None:
    """Which of the names are those of families of types, and the label for these; None if none is."""
    for key in FAMILY_LABELS:
        found = sorted(set(values) & (known_values(catalog, [key]) or frozenset()))
        if found:
            return ", ".join(found), key
    return None


def listed(unknown: Collection[UnknownValue]) -> str:
    """The first few of them, each with what was probably meant."""
    more = ", …" if len(unknown) > _MOST_NAMED else ""
    return ", ".join(map(str, list(unknown)[:_MOST_NAMED])) + more


def _known(catalog: Catalog, keys: Iterable[str]) -> Iterator[Requirement]:
    for key in keys:
        for entry in catalog.types:
            for labels in chain((entry.requirements,), (offering.requirements for offering in entry.offerings)):
                if key in labels:
                    yield labels[key]
