"""What is wrong with an input, in sentences for its author.

A `Flaw` is found in one object by a rule; a `Problem` is a flaw with its place: file, object, field. `InputError`
raises a problem, and the command line prints it as one line.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

_LONGEST_PART: Final = 400
_SHORTEST_PART: Final = 3


class Flaw(NamedTuple):
    """A broken rule inside one object: the field, the rule's name, and a sentence."""

    field: str
    rule: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    object: str = ""
    field: str = ""
    rule: str = "Unreadable"
    message: str
    line: int | None = None
    """Where the document with the object begins in the file, from 1; for text that cannot be read, where that is."""

    @classmethod
    def of(cls, flaw: Flaw, *, file: str, about: str, line: int | None = None) -> "Problem":
        return cls(file=file, object=about, field=flaw.field, rule=flaw.rule, message=flaw.message, line=line)

    def __str__(self) -> str:
        parts = (self.file, self.object, self.field, self.message)
        return one_line(": ".join(part[:_LONGEST_PART] for part in parts if part))


class InputError(Exception):
    """Input that cannot be used; its text is one line for a person."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    @classmethod
    def at(cls, file: str, message: str, *, field: str = "") -> "InputError":
        return cls(Problem(file=file, field=field, message=message))

    @classmethod
    def of_all(cls, problems: Sequence["Problem"]) -> "InputError":
        """All that is wrong with one text, which is named once, on one line."""
        error = cls(problems[0])
        others = (str(msgspec.structs.replace(problem, file="")) for problem in problems[1:])
        error.args = ("; ".join((str(problems[0]), *others)),)
        return error


def one_line(text: str) -> str:
    """The text with line breaks and other control characters made visible, so that it stays on its line."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text
    )


def suggestion(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """The end of a sentence about an unknown name: the known one that was probably meant, if any is close.

    A prefix that all names share makes no two of them alike.
    """
    close = closest(name.removeprefix(prefix), [one.removeprefix(prefix) for one in known])
    return f"; did you mean {prefix}{close}?" if close else ""


def closest(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant: one that is spelt alike, or a long one of which a part was written."""
    from difflib import get_close_matches

    if not name:
        return ""
    if whole := get_close_matches(name, known, n=1):
        return whole[0]
    if len(name) >= _SHORTEST_PART and (holding := [one for one in known if name in one]):
        return min(holding, key=len)
    parts = name.count("-") + 1
    for shortened in (lambda one: one.partition(".")[0], lambda one: "-".join(one.split("-")[-parts:])):
        by_part = {shortened(one): one for one in known}
        if part := get_close_matches(name, by_part, n=1):
            return by_part[part[0]]
    return ""
