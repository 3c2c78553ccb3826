"""Prices and resources that NodeOverlays give to single pools, as decisions use them."""

from tests.disruption.scenarios import CATALOG, NOW, PREFIX, Scenario, node, pool_of
from tests.factories import pod
from tests.factories.values import amounts

from karpool.catalog.overlays import with_overlays
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import NODEPOOL
from karpool.model.node_overlay import NodeOverlay, NodeOverlaySpec
from karpool.model.nodepool import PoolRequirement
from karpool.model.objects import Objects
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.provisioning.inflight import as_launched
from karpool.provisioning.provision import provision
from karpool.wire.objects import Metadata

POOLS = (pool_of("dear"), pool_of("cheap"))
OF_CHEAP = (PoolRequirement(key=NODEPOOL, operator="In", values=("cheap",)),)


def overlaid(**spec: object) -> NodeOverlay:
    return NodeOverlay(metadata=Metadata(name="o"), spec=NodeOverlaySpec(requirements=OF_CHEAP, **spec))  # type: ignore[arg-type]


DISCOUNT = with_overlays(CATALOG, [overlaid(price_adjustment="-50%")], POOLS).catalog
CARDS = with_overlays(CATALOG, [overlaid(capacity=amounts({"example.com/card": 4}))], POOLS).catalog


def test_a_node_is_replaced_by_one_of_the_same_type_in_the_pool_where_that_costs_less() -> None:
    scenario = Scenario(
        "a discount in another pool",
        nodes=[node("a", "tiny", pods=[{"cpu": "800m"}], pool="dear")],
        pools=POOLS,
        catalog=DISCOUNT,
        settings=DisruptionSettings(search=PREFIX),
    )
    (step,) = scenario.plan().steps
    (new,) = step.command.replacements
    assert (step.command.nodes, new.pool, new.instance_types, new.price) == (("a",), "cheap", ("tiny",), 0.025)


def test_a_node_costs_what_its_own_pool_pays() -> None:
    stays = Scenario(
        "nothing is cheaper",
        nodes=[node("a", "tiny", pods=[{"cpu": "800m"}], pool="cheap")],
        pools=POOLS,
        catalog=DISCOUNT,
        reasons={"a": "NotCheaper"},
    )
    stays.verify()
    assert stays.plan().before.price == 0.025


def test_a_pod_that_asks_for_what_one_pool_has_gets_a_node_of_that_pool() -> None:
    wanting = pod("render-1", requests={"example.com/card": 3}, pending=True)
    objects = Objects(pods=(wanting,), node_pools=POOLS)
    result = provision(Engine(Snapshot(objects), CARDS, Options()), objects, ("default/render-1",), NOW)
    (claim,) = result.claims
    assert claim.pool == "cheap"
    expected = as_launched(claim, CARDS)
    assert expected.status.allocatable["example.com/card"].units == 4
    plain = provision(Engine(Snapshot(objects), CATALOG, Options()), objects, ("default/render-1",), NOW)
    assert plain.claims == ()
