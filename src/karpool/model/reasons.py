"""Why not: a typed reason, made where a decision is made and carried unchanged to whoever asks."""

import msgspec


class Reason(msgspec.Struct, frozen=True):
    """A rejection: a stable code for programs, a sentence for people, and the object it is about."""

    code: str
    message: str
    object: str = ""
