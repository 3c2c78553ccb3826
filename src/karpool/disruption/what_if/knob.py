"""What all knobs have in common."""

from collections.abc import Sequence

import msgspec

from karpool.disruption.what_if.question import Question
from karpool.wire.objects import FrozenMeta


class Knob(
    msgspec.Struct, metaclass=FrozenMeta, frozen=True, rename="camel", tag_field="knob", forbid_unknown_fields=True
):
    """One thing that is otherwise; as JSON it has the field `knob`, which says what it is."""

    def turn(self, question: Question) -> Question:
        """The question as it is then; a `KnobError` if the knob does not fit it."""
        raise NotImplementedError

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - most knobs need not look
        """Whether whatever is allowed now still is when the knob is turned, so that nothing ends dearer for it."""
        return False

    @property
    def words(self) -> str:
        """What is to be done for it, for people."""
        raise NotImplementedError


def turned(question: Question, knobs: Sequence[Knob]) -> Question:
    """The question with all knobs turned, one after the other."""
    for knob in knobs:
        question = knob.turn(question)
    return question
