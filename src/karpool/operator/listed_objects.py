"""Objects that are listed now and then, and not watched, brought into their stores between decisions."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from karpool.kube.cache import ChangeQueue
from karpool.kube.store import Store
from karpool.wire.objects import Object


def queue_listed(
    changes: ChangeQueue, stores: Mapping[str, Store[Any]], found: Mapping[str, tuple[Object, ...]]
) -> None:
    """Let each store hold what was found for it, nothing if nothing was; in the order of the stores."""
    for name, kept in stores.items():
        objects = found.get(name, ())
        if tuple(kept.listed()) != objects:
            changes.add(partial(_replace, kept, objects))


def _replace(kept: Store[Any], objects: Iterable[Object]) -> None:
    by_key = {obj.key: obj for obj in objects}
    for key in [obj.key for obj in kept.listed() if obj.key not in by_key]:
        kept.remove(key)
    for key, obj in by_key.items():
        if kept.get(key) != obj:
            kept.put(obj)
