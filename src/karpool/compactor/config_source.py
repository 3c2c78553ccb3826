"""The compactor's configuration where it is kept: under one key of a ConfigMap, or in a file; read again and again."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from karpool.compaction.config import KEY, Config, parse_config
from karpool.kube.api_objects import ConfigMap
from karpool.kube.client import Client
from karpool.kube.errors import NotFoundError
from karpool.kube.kubeconfig import IN_CLUSTER
from karpool.kube.resources import CONFIG_MAPS
from karpool.kube.store import Store
from karpool.kube.target import Target
from karpool.wire.problems import InputError

_log = structlog.get_logger()
NAMESPACE: Final = "estafette"
Read = Callable[[], str | bytes]
"""The text of a configuration; raises InputError if there is none."""


def config_namespace(target: Target, given: str | None) -> str:
    """Where to look for the ConfigMap: as told, else beside this pod, else where the original has it."""
    return given or (target.namespace if target.context == IN_CLUSTER else NAMESPACE)


async def read_compactor_config(client: Client, *, name: str, namespace: str | None) -> Config:
    """The configuration as it is now; raises InputError if there is none, or it cannot be used."""
    key = f"{config_namespace(client.target, namespace)}/{name}"
    try:
        found = await client.get(CONFIG_MAPS, name, namespace=key.partition("/")[0])
    except NotFoundError:
        found = None
    return parse_config(_text(found, key), file=place_of(key))


def place_of(key: str) -> str:
    """What to call the configuration in a ConfigMap."""
    return f"ConfigMap {key}: data[{KEY}]"


def in_config_map(store: Store[ConfigMap], key: str) -> Read:
    """Read from a ConfigMap that is kept up to date."""
    return lambda: _text(store.get(key), key)


def in_file(path: Path) -> Read:
    """Read from a file, also one that is a link to somewhere else by now, as in a mounted ConfigMap."""

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError.at(str(path), f"cannot be read: {error.strerror}") from error

    return read


def _text(found: ConfigMap | None, key: str) -> str:
    if found is None:
        raise InputError.at(f"ConfigMap {key}", "does not exist; make it, or name a file with --config")
    if KEY not in found.data:
        raise InputError.at(f"ConfigMap {key}", f"has no key {KEY}")
    return found.data[KEY]


class Configuration:
    """The last good configuration, whatever has been written since; `refresh` looks for a new one."""

    def __init__(self, place: str, read: Read, on_problem: Callable[[str | None], None]) -> None:
        """`on_problem` hears what is wrong with a new configuration, and None when all is well again."""
        self.current: Config | None = None
        self.problem: str | None = "was not looked for yet"
        self._place = place
        self._read = read
        self._on_problem = on_problem
        self._written: str | bytes | None = None

    def refresh(self) -> bool:
        """Whether there is another good configuration than before."""
        try:
            written = self._read()
            if written == self._written:
                return False
            config = parse_config(written, file=self._place)
        except InputError as error:
            self._written = None
            self._refuse(str(error))
            return False
        self._written = written
        return self._accept(config)

    def _accept(self, config: Config) -> bool:
        before, self.current = self.current, config
        if self.problem is not None:
            self.problem = None
            self._on_problem(None)
        enabled = sorted(name for name, pool in config.node_pools.items() if pool.enabled)
        _log.info("read the configuration", place=self._place, enabled_pools=enabled)
        return config != before

    def _refuse(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        kept = "the last good one is kept" if self.current is not None else "nothing is done without one"
        _log.error("the configuration cannot be used", problem=problem, so=kept)
        self._on_problem(problem)
