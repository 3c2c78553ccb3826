"""The catalogue beside Karpenter, while things change."""

from tests.factories import default_catalog

from karpool.controller.store import ClusterStore
from karpool.model.node_overlay import NodeOverlay, NodeOverlaySpec
from karpool.operator.observed_catalog import ObservedCatalog
from karpool.wire.objects import Metadata


def test_an_overlay_changes_prices_while_the_controller_runs() -> None:
    store, plain = ClusterStore(), default_catalog()
    source = ObservedCatalog(store, lambda _nodes, _claims, _pools: plain)
    assert source.catalog.types == plain.types
    store.overlays.put(NodeOverlay(metadata=Metadata(name="flat"), spec=NodeOverlaySpec(price="0.125")))
    assert {offering.price for entry in source.catalog.types for offering in entry.offerings} == {0.125}
    assert source.catalog is source.catalog
    store.overlays.remove("flat")
    assert source.catalog.types == plain.types
