"""What Cluster Autoscaler says of its groups, read before every decision; without the right to know it, nothing."""

import structlog

from karpool.kube.client import Client
from karpool.kube.errors import ApiError
from karpool.live.reading import read_autoscaler_status
from karpool.model.workloads import ConfigMap

_log = structlog.get_logger()


class AutoscalerStatus:
    """The status as it was last read; whatever cannot be read now is as it was."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: tuple[ConfigMap, ...] = ()
        self._problem = ""

    async def read(self) -> tuple[ConfigMap, ...]:
        """The ConfigMap, if there is one; a problem is logged once."""
        try:
            status = await read_autoscaler_status(self._client)
        except ApiError as error:
            if error.message != self._problem:
                self._problem = error.message
                _log.warning("minimum sizes of pools may not be known", why=error.message)
        else:
            self._known, self._problem = () if status is None else (status,), ""
        return self._known
