"""The compactor's configuration: which pools take part, and when a node counts as under-used.

It is JSON (or YAML): an object with `nodePools`, in a file of its own or under a key of a ConfigMap.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import field

from karpool.model.cron import parse_schedule
from karpool.wire.documents import DocumentError, documents
from karpool.wire.duration import NEVER, Duration
from karpool.wire.fields import explain, unknown_field, unknown_fields, without_nulls, written_path
from karpool.wire.objects import Wire, decode_value
from karpool.wire.problems import Flaw, InputError, Problem

KEY: Final = "estafette-k8s-node-compactor-config.yaml"
CONFIG_MAP: Final = "estafette-k8s-node-compactor-config"
DEFAULT_NAMESPACE: Final = "estafette"
"""The namespace of the original, for those who are in no cluster and name none."""
_EXPECTED: Final = 'expected an object such as {"nodePools": {"name": {"enabled": true, …}}}, or a ConfigMap with it'


class TimeWindow(Wire):
    """A recurring window of time, in UTC."""

    schedule: str
    duration: Duration

    def open(self, now: datetime) -> bool:
        length = self.duration.delta
        return length is not None and parse_schedule(self.schedule).active(now, length)


class PoolConfig(Wire):
    enabled: bool = False
    cpu_limit: float | None = field(name="scaleDownCPURequestRatioLimit", default=None)
    """A node whose requested CPU is under this ratio is under-used."""
    required_count: int = field(name="scaleDownRequiredUnderutilizedNodeCount", default=0)
    """How many nodes must be under-used for one of them to be drained."""
    memory_limit: float | None = field(name="scaleDownMemoryRequestRatioLimit", default=None)
    """If given, requested memory must be under this ratio, too."""
    max_in_progress: int | None = field(name="maxConcurrentScaleDowns", default=None)
    """How many scale-downs may be in progress at once; None: as many as the required count allows."""
    windows: tuple[TimeWindow, ...] = field(name="scaleDownWindows", default=())
    """If given, scale-downs start only while one of them is open."""
    respect_pdbs: bool = field(name="respectPodDisruptionBudgets", default=True)
    """Whether pods are evicted, which PodDisruptionBudgets can refuse, or deleted."""
    check_fit: bool = field(name="checkFit", default=True)
    """Whether a node is drained only if each of its pods has a place on another node."""
    skip_system_pods: bool = field(name="skipNodesWithSystemPods", default=False)
    """Whether kube-system pods that the autoscaler would not move block a drain."""
    minimum: int | None = field(name="minimumNodes", default=None)
    """How many nodes the pool keeps in any case; None: as many as its autoscaler says, if that is known."""


NOT_ENABLED: Final = PoolConfig()


class Config(Wire):
    node_pools: dict[str, PoolConfig] = {}

    def pool(self, name: str) -> PoolConfig:
        """The configuration of a pool; a pool that is not named is not enabled."""
        return self.node_pools.get(name, NOT_ENABLED)


def parse_config(text: str | bytes, *, file: str = "configuration") -> Config:
    """Read a configuration; raises InputError with one line that names the field."""
    data = text.encode() if isinstance(text, str) else text
    values = _values(data, file)
    manifests = [value for value in values if isinstance(value, dict) and "kind" in value]
    if manifests:
        return _from_config_map(manifests, file)
    if len(values) != 1:
        problem = "is empty; write {} to enable no pool" if not values else f"holds {len(values)} documents; keep one"
        raise InputError.at(file, problem)
    return _checked(values[0], file)


def _values(data: bytes, file: str) -> list[Any]:
    try:
        return [without_nulls(msgspec.json.decode(document)) for document in documents(data)]
    except (DocumentError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.at(file, str(error)) from error


def _from_config_map(manifests: list[dict[str, Any]], file: str) -> Config:
    for manifest in _opened(manifests):
        data = manifest.get("data")
        if manifest.get("kind") == "ConfigMap" and isinstance(data, dict) and isinstance(data.get(KEY), str):
            return parse_config(data[KEY], file=f"{file}: data[{KEY}]")
    raise InputError.at(file, f"no ConfigMap in it has the key {KEY}")


def _opened(manifests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Manifests, with the items of lists."""
    for manifest in manifests:
        items = manifest.get("items")
        yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else (manifest,)


def _checked(value: Any, file: str) -> Config:
    if not isinstance(value, dict):
        raise InputError.at(file, _EXPECTED)
    try:
        config: Config = msgspec.convert(value, Config, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        raise _refused(explain(error, Config, value), file) from error
    # A misspelt limit that is ignored would drain nodes that should stay.
    unknown = [unknown_field(path, known) for path, known in unknown_fields(Config, value)]
    for flaw in (*unknown, *_pool_flaws(config.node_pools)):
        raise _refused(flaw, file)
    return config


def _refused(flaw: Flaw, file: str) -> InputError:
    return InputError(Problem.of(flaw, file=file, about=""))


def _pool_flaws(pools: Mapping[str, PoolConfig]) -> Iterator[Flaw]:
    for name, pool in pools.items():
        at = written_path(("nodePools", name))
        if pool.enabled and pool.cpu_limit is None:
            yield Flaw(f"{at}.scaleDownCPURequestRatioLimit", "MissingField", "is missing; an enabled pool needs it")
        yield from _ratio_flaws(pool.cpu_limit, f"{at}.scaleDownCPURequestRatioLimit")
        yield from _ratio_flaws(pool.memory_limit, f"{at}.scaleDownMemoryRequestRatioLimit")
        yield from _count_flaws(pool.required_count, 0, f"{at}.scaleDownRequiredUnderutilizedNodeCount")
        yield from _count_flaws(pool.max_in_progress, 1, f"{at}.maxConcurrentScaleDowns")
        yield from _count_flaws(pool.minimum, 0, f"{at}.minimumNodes")
        for number, window in enumerate(pool.windows):
            yield from _window_flaws(window, f"{at}.scaleDownWindows[{number}]")


def _ratio_flaws(ratio: float | None, path: str) -> Iterator[Flaw]:
    if ratio is not None and not 0 <= ratio <= 1:
        yield Flaw(path, "Ratio", f"{ratio:g} is not a part of a whole; write 0 to 1, such as 0.75 for 75%")


def _count_flaws(count: int | None, least: int, path: str) -> Iterator[Flaw]:
    if count is not None and count < least:
        yield Flaw(path, "Count", f"{count} is not allowed; write {least} or more")


def _window_flaws(window: TimeWindow, path: str) -> Iterator[Flaw]:
    try:
        parse_schedule(window.schedule)
    except ValueError as error:
        yield Flaw(f"{path}.schedule", "Schedule", str(error))
    if window.duration == NEVER or (window.duration.nanos or 0) <= 0:
        yield Flaw(f"{path}.duration", "Duration", f"'{window.duration}' is not allowed; write a length such as 8h")
