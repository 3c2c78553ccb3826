"""The caches of `karpool run`: those of every live cluster, and NodeClaims, NodePools, volume attachments, a pause."""

from karpool.kube.client import Client
from karpool.live import resources as r
from karpool.live.caches import ClusterCaches
from karpool.live.default_spread import LiveDefaultSpread
from karpool.live.writer import CacheFeeds
from karpool.model.labels import PAUSE_MAP
from karpool.model.scheduling import SpreadConstraint
from karpool.observability.metrics import Metrics


class OperatorCaches(ClusterCaches):
    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        *,
        pause_namespace: str,
        default_spread: tuple[SpreadConstraint, ...] = (),
        node_overlays: bool = False,
        devices: bool = False,
    ) -> None:
        super().__init__(client, metrics.watch_restarted)
        claims = self.watch(r.NODE_CLAIMS, self.store.claims)
        pools = self.watch(r.NODE_POOLS, self.store.pools)
        self.feeds = CacheFeeds({"Node": self.nodes, "NodeClaim": claims, "NodePool": pools, "Pod": self.pods})
        self.watch(r.VOLUME_ATTACHMENTS, self.store.volume_attachments)
        if node_overlays:
            self.watch(r.NODE_OVERLAYS, self.store.overlays)
        if devices:
            self.watch(r.RESOURCE_CLAIMS, self.store.resource_claims)
            self.watch(r.RESOURCE_CLAIM_TEMPLATES, self.store.resource_claim_templates)
            self.watch(r.RESOURCE_SLICES, self.store.resource_slices)
            self.watch(r.DEVICE_CLASSES, self.store.device_classes)
        self.watch(r.PAUSES, self.store.pauses, namespace=pause_namespace, name=PAUSE_MAP)
        self._spread = LiveDefaultSpread(self, default_spread) if default_spread else None
