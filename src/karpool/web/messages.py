"""What the process that serves pages and the one that works answers out say to each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from karpool.web.questions import Decider, PageQuestion
from karpool.wire.objects import Object

LENGTH: Final = "!Q"
"""How the length of a message is written before it."""


class Start(NamedTuple):
    """The first message."""

    decider: Decider
    nice: int
    """By how much the process is to give way to others."""
    journal: Path | None


class Update(NamedTuple):
    """Objects of a collection that are new, changed, or gone."""

    collection: str
    changed: Mapping[str, Object | None]


class Ask(NamedTuple):
    number: int
    question: PageQuestion


class Drop(NamedTuple):
    """Nobody waits for an answer any more."""

    number: int


class Progressed(NamedTuple):
    number: int
    what: str
    done: int
    most: int | None


class Foreseen(NamedTuple):
    """What is known of an answer before it is complete."""

    number: int
    answer: bytes


class Answered(NamedTuple):
    number: int
    answer: bytes


class Failed(NamedTuple):
    number: int
    why: str
