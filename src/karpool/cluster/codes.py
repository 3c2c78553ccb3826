"""Numbers for words in columns. Kernels compile them in, so a change here compiles the kernels again."""

from enum import IntEnum
from typing import Final

# Values of the column `live`: no destination; a NodeClaim whose Node has not appeared yet; a Node; a Node that counts,
# but takes no pods: something that bears on it cannot be read, or it is a Fargate or a virtual node.
GONE: Final = 0
EXPECTED: Final = 1
PRESENT: Final = 2
SEALED: Final = 3


class GroupKind(IntEnum):
    """What a topology group counts pods for."""

    SPREAD = 0
    AFFINITY = 1
    ANTI = 2
    INVERSE = 3
