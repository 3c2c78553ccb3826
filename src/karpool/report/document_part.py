"""The base of every part of a document."""

from typing import Final

import msgspec

API_VERSION: Final = "karpool.sh/v1"


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every part of a document; all fields are always written."""
