"""The ConfigMap that remembers what the compactor has drained lately, so that rates hold over restarts."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from karpool.compaction.rates import LEDGER, LEDGER_KEY, Ledger, ledger_with
from karpool.disruption.brakes.ledger import LedgerEntry
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, NotFoundError
from karpool.live.resources import PLAIN_CONFIG_MAPS

_log = structlog.get_logger()


async def read_drain_ledger(client: Client, namespace: str) -> tuple[Ledger, str | None]:
    """What is written, or why that is not known; and the version of the ConfigMap, None if there is none."""
    try:
        found = await client.get(PLAIN_CONFIG_MAPS, LEDGER, namespace=namespace)
    except NotFoundError:
        return Ledger(), None
    except ApiError as error:
        return Ledger(problem=str(error)), None
    return Ledger(found.data.get(LEDGER_KEY)), found.metadata.resource_version


class LedgerMap:
    """Reads the ledger before each step and writes it before a node is cordoned; a write on an old version fails."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._known: tuple[Ledger, str | None] = (Ledger(), None)

    async def read(self) -> Ledger:
        """What is written now."""
        self._known = await read_drain_ledger(self._client, self._namespace)
        return self._known[0]

    async def write(self, entries: Sequence[LedgerEntry], now: datetime) -> bool:
        """Put entries into the ledger that was read last; whether they are there now."""
        ledger, version = self._known
        data = {LEDGER_KEY: ledger_with(ledger.text, entries, now)}
        try:
            if version is None:
                body = {"metadata": {"name": LEDGER}, "data": data}
                await self._client.create(PLAIN_CONFIG_MAPS, body, namespace=self._namespace)
            else:
                await self._client.merge_patch(
                    PLAIN_CONFIG_MAPS, LEDGER, {"data": data}, namespace=self._namespace, resource_version=version
                )
        except ApiError as error:
            _log.warning("ledger not written", error=str(error), so="no drain starts")
            return False
        return True
