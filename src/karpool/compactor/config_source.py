"""The source of the compactor's configuration: a key of a ConfigMap, or a file; it is read again when it changes."""

from collections.abc import Callable
from pathlib import Path

import structlog

from karpool.compaction.config import DEFAULT_NAMESPACE, KEY, Config, parse_config
from karpool.kube.client import Client
from karpool.kube.errors import NotFoundError
from karpool.kube.kubeconfig import IN_CLUSTER
from karpool.kube.store import Store
from karpool.kube.target import Target
from karpool.live.resources import PLAIN_CONFIG_MAPS
from karpool.model.workloads import ConfigMap
from karpool.wire.problems import InputError

_log = structlog.get_logger()
Read = Callable[[], str | bytes]
"""The text of a configuration; raises InputError if there is none."""


def config_namespace(target: Target, given: str | None) -> str:
    """The namespace of the ConfigMap: as given, else that of this pod, else that of the original."""
    return given or (target.namespace if target.context == IN_CLUSTER else DEFAULT_NAMESPACE)


async def read_compactor_config(client: Client, *, name: str, namespace: str | None) -> Config | None:
    """The current configuration, None if there is no such ConfigMap; raises InputError if it is invalid."""
    key = f"{config_namespace(client.target, namespace)}/{name}"
    try:
        config_map = await client.get(PLAIN_CONFIG_MAPS, name, namespace=key.partition("/")[0])
    except NotFoundError:
        return None
    return parse_config(_text(config_map, key), file=place_of(key))


def place_of(key: str) -> str:
    return f"ConfigMap {key}: data[{KEY}]"


def in_config_map(store: Store[ConfigMap], key: str) -> Read:
    return lambda: _text(store.get(key), key)


def in_file(path: Path) -> Read:
    """Read from a file, which may become a link to another one, as in a mounted ConfigMap."""

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError.at(str(path), f"cannot be read: {error.strerror}") from error

    return read


def _text(config_map: ConfigMap | None, key: str) -> str:
    if config_map is None:
        raise InputError.at(f"ConfigMap {key}", "does not exist; create it, or name a file with --config")
    if KEY not in config_map.data:
        raise InputError.at(f"ConfigMap {key}", f"has no key {KEY}")
    return config_map.data[KEY]


class Configuration:
    """The last valid configuration; `refresh` reads the source again."""

    def __init__(self, place: str, read: Read, on_problem: Callable[[str | None], None]) -> None:
        """`on_problem` is called with what is wrong with a new configuration, and with None when it is valid again."""
        self.current: Config | None = None
        self.problem: str | None = "was not read yet"
        self._place = place
        self._read = read
        self._on_problem = on_problem
        self._text: str | bytes | None = None

    def refresh(self) -> bool:
        try:
            text = self._read()
            if text == self._text:
                return False
            config = parse_config(text, file=self._place)
        except InputError as error:
            self._text = None
            self._refuse(str(error))
            return False
        self._text = text
        return self._accept(config)

    def _accept(self, config: Config) -> bool:
        before, self.current = self.current, config
        if self.problem is not None:
            self.problem = None
            self._on_problem(None)
        enabled = sorted(name for name, pool in config.node_pools.items() if pool.enabled)
        _log.info("configuration loaded", place=self._place, enabled_pools=enabled)
        return config != before

    def _refuse(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        kept = "the last good one is kept" if self.current is not None else "nothing is done without one"
        _log.error("configuration rejected", problem=problem, so=kept)
        self._on_problem(problem)
