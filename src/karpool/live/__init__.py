"""Karpool's kinds on a real API server: caches that fill a ClusterStore, reads, writes, snapshot files and CRDs.

It may import `kube`, `controller` and what they may import. It does not decide, runs no control loop and serves no
pages: see `controller`, `operator` and `observability` for that.
"""

from typing import Final

from karpool import __version__

USER_AGENT: Final = f"karpool/{__version__}"
"""What Karpool calls itself to an API server."""
