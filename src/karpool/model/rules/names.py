"""How label keys and values must be spelled, and which keys users may not set."""

import re
from typing import Final

from karpool.model.labels import HOSTNAME, NODEPOOL, WELL_KNOWN, canonical

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
LONGEST_VALUE: Final = 63
"""Also of the name in a key."""
_LONGEST_DOMAIN: Final = 253
_LONGEST_KEY: Final = 316
_OWN_DOMAIN: Final = "karpenter.sh"


def wrong_key(key: str) -> str | None:
    """What is wrong with the spelling of a label key, or None."""
    domain, slash, name = key.rpartition("/")
    well_formed = _is_name(name) and (not slash or is_domain(domain)) and len(key) <= _LONGEST_KEY
    if well_formed:
        return None
    return f"{key[:60]!r} is not a label key; write a name of at most 63 characters, or domain/name"


def wrong_value(value: str) -> str | None:
    """What is wrong with the spelling of a label value, or None."""
    if not value or _is_name(value):
        return None
    return f"{value[:70]!r} is not a label value; write at most 63 letters, digits, '-', '_' or '.'"


def restricted_key(key: str) -> str | None:
    """Why users may not set a label key on the nodes of a pool, or None."""
    name = canonical(key)
    if name == HOSTNAME:
        return f"{key} may not be used here; each node has a hostname of its own"
    if name == NODEPOOL:
        return f"{key} may not be used here; nodes of a pool get it by themselves"
    domain = name.rpartition("/")[0]
    if domain.endswith(_OWN_DOMAIN) and name not in WELL_KNOWN:
        return f"{key} is in a domain that ends in {_OWN_DOMAIN}, which is restricted; use a domain of your own"
    return None


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_VALUE and _NAME.fullmatch(text) is not None


def is_domain(text: str) -> bool:
    """Whether a text is spelled as a domain, and as names of most objects are."""
    return len(text) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(text) is not None
