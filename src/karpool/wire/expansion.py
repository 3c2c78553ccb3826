"""How much compressed input may grow: what compresses far better than manifests do is made to fill the memory."""

from typing import Final

MOST_TIMES: Final = 200
"""Manifests shrink 10 to 100 times: each object has a name and a uid of its own."""
ALLOWANCE: Final = 64 * 2**20
"""Bytes that anything may unpack to: what is small does no harm."""


class ExpansionError(ValueError):
    """Compressed input that grows as manifests never do."""

    def __init__(self) -> None:
        super().__init__(f"unpacks to more than {MOST_TIMES} times its size, as manifests never do")


def check_expansion(packed: int, unpacked: int) -> None:
    """Refuse to go on when so many bytes have become so many."""
    if unpacked > ALLOWANCE and unpacked > MOST_TIMES * packed:
        raise ExpansionError
