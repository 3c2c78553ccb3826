"""Reasons: typed values, made where a decision is made, and shown unchanged everywhere."""

import msgspec


class Reason(msgspec.Struct, frozen=True):
    """A rejection: a stable code for programs, a sentence for people, and the object it is about."""

    code: str
    message: str
    object: str = ""
