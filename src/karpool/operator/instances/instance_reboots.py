"""Has instances rebooted: each in its own task, asked for again until the provider takes it on, or for five minutes.

What comes of it is written on the claim, where `execution.reboot` reads it, also after a restart.
"""

import asyncio
from typing import Final

import structlog

from karpool.execution import actions as a
from karpool.execution.conditions import REBOOT_ISSUED
from karpool.execution.reboot import LONGEST_ISSUE
from karpool.kube.backoff import Backoff
from karpool.kube.errors import ApiError
from karpool.model import labels as names
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.operator.instances.instance_tasks import InstanceTasks
from karpool.operator.providers.protocol import LaunchError, RebootError, Reboots

_log = structlog.get_logger()
_LONGEST_MESSAGE: Final = 300


class InstanceReboots(InstanceTasks):
    """Asks the provider; a later process asks again, for the same operation."""

    def ask(self, action: a.RebootInstance) -> None:
        """Ask the provider for a reboot, unless it is being asked."""
        claim = self._store.claims.get(action.claim)
        if claim is not None and claim.metadata.uid == action.uid and action.uid not in self._tasks:
            self._tasks[action.uid] = asyncio.create_task(self._ask(claim, action.operation))

    async def _ask(self, claim: NodeClaim, operation: str) -> None:
        uid, backoff, began = claim.metadata.uid, Backoff(first=1.0, most=30.0), self._clock()
        try:
            while self._alive():
                message = await self._attempt(claim, operation)
                if message is None:
                    return
                if self._clock() - began > LONGEST_ISSUE:
                    await self._refuse(claim, f"the provider has not taken the reboot on in time: {message}")
                    return
                await self._sleep(backoff.next())
                current = self._store.claims.get(claim.name)
                if current is None or current.metadata.uid != uid or current.terminating:
                    return
        finally:
            self._tasks.pop(uid, None)

    async def _attempt(self, claim: NodeClaim, operation: str) -> str | None:
        """What is to be tried again, and why; None if nothing is."""
        if not isinstance(self._instances, Reboots):
            return await self._refuse(claim, "the provider cannot reboot instances")
        try:
            await self._instances.reboot(claim, operation)
            issued = self._clock().isoformat(timespec="seconds")
            await self._writer.edit([a.Annotate("NodeClaim", claim.name, names.REBOOT_ISSUED, issued)])
            condition = a.SetClaimCondition(claim.name, REBOOTING, "True", REBOOT_ISSUED, "the provider reboots it")
            await self._writer.edit([condition])
        except RebootError as error:
            return await self._refuse(claim, str(error))
        except (LaunchError, ApiError) as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001
            self._unexpected("reboot", claim)
            message = f"the provider failed: {type(error).__name__}: {error}"
        else:
            return None
        _log.warning("reboot failed; retrying", claim=claim.name, error=message)
        return message

    async def _refuse(self, claim: NodeClaim, message: str) -> str | None:
        """Write down that there will be no reboot; why that could not be written, if so."""
        _log.warning("reboot refused", claim=claim.name, error=message)
        try:
            refused = a.Annotate("NodeClaim", claim.name, names.REBOOT_REFUSED, message[:_LONGEST_MESSAGE])
            await self._writer.edit([refused])
        except ApiError as error:
            return str(error)
        return None
