"""What the checker finds."""

from dataclasses import dataclass
from typing import Final

GRACE: Final = 5.0
"""What happened in the last seconds before a request need not have been known to its sender."""
OLDEST: Final = 60.0
"""Nobody acts on what is older than this: by then it is known that a watch is silent, and no request takes so long."""
FRESH: Final = 60.0
"""How long a list of the pods of a node counts."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, at which revision, and how."""

    rule: str
    revision: int
    time: float
    message: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.time:.1f} s (line {self.revision + 1}): {self.message}"
