"""The caches of `karpool run`: those of every live cluster, and NodeClaims, NodePools and volume attachments."""

from karpool.kube.client import Client
from karpool.live import resources as r
from karpool.live.caches import ClusterCaches
from karpool.live.writer import CacheFeeds
from karpool.observability.metrics import Metrics


class OperatorCaches(ClusterCaches):
    def __init__(self, client: Client, metrics: Metrics) -> None:
        super().__init__(client, metrics.watch_restarted)
        claims = self.watch(r.NODE_CLAIMS, self.store.claims)
        pools = self.watch(r.NODE_POOLS, self.store.pools)
        self.feeds = CacheFeeds({"Node": self.nodes, "NodeClaim": claims, "NodePool": pools, "Pod": self.pods})
        self.watch(r.VOLUME_ATTACHMENTS, self.store.volume_attachments)
