"""How `karpool run` is set that consolidates a cluster: it says so on the Lease that it holds."""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ForbiddenError, NotFoundError
from karpool.kube.resources import LEASES
from karpool.recording.settings import ANNOTATION, read

_log = structlog.get_logger()
_HELD: Final = 4
"""How many times its duration a lease may not have been renewed until nobody holds it; clocks differ."""


class LeaseReader:
    """Reads a Lease; what cannot be read is told once, and what was known before counts."""

    def __init__(self, client: Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._known: dict[str, Any] | None = None
        self._told = False

    async def settings(self, now: datetime) -> dict[str, Any] | None:
        """The settings of the process that leads; None if there is none, or if it does not say."""
        try:
            lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except NotFoundError:
            self._known = None
        except ForbiddenError as error:
            self._tell(error)
            self._known = None
        except ApiError as error:
            self._tell(error)
        else:
            renewed, spec = lease.spec.renew_time, lease.spec
            held = timedelta(seconds=_HELD * spec.lease_duration_seconds)
            leads = bool(spec.holder_identity) and renewed is not None and now - renewed < held
            self._known = read(lease.metadata.annotations.get(ANNOTATION, "")) if leads else None
        return self._known

    def _tell(self, error: ApiError) -> None:
        if not self._told:
            self._told = True
            lease = f"{self._namespace}/{self._name}"
            _log.warning("how the controller is set is not known", lease=lease, error=str(error))
