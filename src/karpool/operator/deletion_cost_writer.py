"""Writes deletion costs on pods, beside everything else: nothing waits for them.

A pod that has changed or is gone meanwhile is left alone; the next round looks at it again. Any other failure holds all
writes up for a while, longer each time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import structlog

from karpool.execution.actions import SetDeletionCost
from karpool.kube.backoff import Backoff
from karpool.kube.cache import CacheFeed
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ConflictError, NotFoundError, NotLeadingError
from karpool.live.resources import PODS
from karpool.model.deletion_cost import cost_edit
from karpool.model.pod import Pod

_log = structlog.get_logger()
_AT_ONCE: Final = 10
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 10.0

CostResult = Literal["updated", "skipped_unchanged", "skipped_notfound", "skipped_conflict", "error"]


class DeletionCostWriter:
    """Keeps the last cost asked for each pod until `run` has written it."""

    def __init__(
        self,
        client: Client,
        pods: CacheFeed[Pod],
        *,
        pool_of: Callable[[str], str],
        on_result: Callable[[CostResult], None],
        on_pending: Callable[[Mapping[str, int]], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`on_pending` is told on how many nodes of each pool pods wait to be written."""
        self._client = client
        self._pods = pods
        self._pool_of = pool_of
        self._on_result = on_result
        self._on_pending = on_pending
        self._sleep = sleep
        self._waiting: dict[str, SetDeletionCost] = {}
        self._filled = asyncio.Event()
        self._backoff = Backoff(first=_FIRST_WAIT, most=_LONGEST_WAIT)

    def ask(self, action: SetDeletionCost) -> None:
        """Have a cost written some time, in place of what was asked for the same pod before."""
        self._waiting[action.key] = action
        self._filled.set()

    def stop(self) -> None:
        """Forget what is not written yet: another replica decides now."""
        self._waiting.clear()
        self._report()

    async def run(self) -> None:
        while True:
            await self._filled.wait()
            self._report()
            await self._write_some()
            if not self._waiting:
                self._filled.clear()
                self._report()

    async def _write_some(self) -> None:
        batch = [self._waiting.pop(key) for key in list(self._waiting)[:_AT_ONCE]]
        results = await asyncio.gather(*map(self._write, batch))
        failed = [action for action, result in zip(batch, results, strict=True) if result == "error"]
        for result in results:
            if result is not None:
                self._on_result(result)
        if failed:
            self._waiting = {action.key: action for action in failed} | self._waiting
            await self._sleep(self._backoff.next())
        else:
            self._backoff.reset()

    async def _write(self, action: SetDeletionCost) -> CostResult | None:
        """Write one cost; None if nothing is to be told, because this replica does not lead any more."""
        pod = self._pods.store.get(action.key)
        if pod is None or pod.metadata.uid != action.uid:
            return "skipped_notfound"
        edit = cost_edit(pod.metadata.annotations, action.cost)
        if not edit:
            return "skipped_unchanged"
        meta = pod.metadata
        try:
            written = await self._client.merge_patch(
                PODS,
                meta.name,
                {"metadata": {"annotations": edit}},
                namespace=meta.namespace,
                resource_version=meta.resource_version,
            )
        except NotFoundError:
            return "skipped_notfound"
        except ConflictError:
            return "skipped_conflict"
        except NotLeadingError:
            return None
        except ApiError as error:
            _log.warning("deletion cost not written; retrying", pod=action.key, error=str(error))
            return "error"
        self._pods.record_write(written)
        return "updated"

    def _report(self) -> None:
        nodes = {action.node for action in self._waiting.values()}
        self._on_pending(Counter(map(self._pool_of, nodes)))
