"""What findings cost: two plans, one with the finding put right."""

from datetime import UTC, datetime
from typing import Any

from tests.factories import affinity_to, claim_for, instance_type, node_of, node_pool, pdb, pod
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.disruption.settings import DisruptionSettings
from karpool.lint.cluster import LintedCluster
from karpool.lint.costs import Costs
from karpool.lint.finding import Finding, LintCode
from karpool.lint.rules import findings
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ON_DEMAND, SPOT
from karpool.model.objects import Objects
from karpool.packing.options import Options

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
BIG, SMALL = instance_type("big", 16, "64Gi", price=1.0), instance_type("small", 2, "8Gi", price=0.1)
WEB = {"app": "web"}
RULES = [(CAPACITY_TYPE, "In", ON_DEMAND)]


def cost_of(code: LintCode, catalog: Catalog | None = None, **objects: Any) -> list[float | None]:
    given = Objects(**{name: tuple(listed) for name, listed in objects.items()})
    cluster = LintedCluster(given, catalog or Catalog((BIG, SMALL)), NOW, DisruptionSettings())
    costs = Costs(cluster, Options())
    found: list[Finding] = [finding for rule, finding in findings(cluster) if rule.code is code]
    return [None if (cost := costs.per_hour(finding)) is None else round(cost, 6) for finding in found]


def two_nodes(**rules: Any) -> dict[str, Any]:
    """Two nodes of 1 $/h, each with a small pod; together these fit on one of 0.1 $/h."""
    nodes = [node_of(name, BIG) for name in ("a", "b")]
    pods = [
        pod(f"web-{n.name}", labels=WEB, node=n.name, started=datetime(2026, 11, 1, tzinfo=UTC), **rules) for n in nodes
    ]
    return {"nodes": nodes, "node_claims": [claim_for(n) for n in nodes], "pods": pods}


def test_a_budget_that_never_opens_costs_what_a_plan_would_save_without_it() -> None:
    pool = node_pool(budgets=["0"], requirements=RULES)
    assert cost_of(LintCode.BUDGET_NEVER_OPENS, node_pools=[pool], **two_nodes()) == [1.9]


def test_a_pdb_that_never_allows_costs_the_nodes_that_it_holds() -> None:
    """Whether budgets of pools allow anything just now does not count."""
    pool = node_pool(budgets=["0"], requirements=RULES)
    held = pdb("p", WEB, max_unavailable=0)
    found = cost_of(LintCode.PDB_NEVER_ALLOWS, node_pools=[pool], pod_disruption_budgets=[held], **two_nodes())
    assert found == [1.9]


def test_without_pods_nothing_is_known() -> None:
    """Every fleet for no pods is free, whatever the rule."""
    closed = node_pool(budgets=["0"], requirements=RULES)
    assert cost_of(LintCode.BUDGET_NEVER_OPENS, node_pools=[closed]) == [None]
    spot = node_pool(requirements=[(CAPACITY_TYPE, "In", SPOT)])
    assert cost_of(LintCode.FEW_SPOT_TYPES, Catalog((instance_type("s", 2, "8Gi", price=0.1),)), node_pools=[spot]) == [
        None
    ]


def test_protection_without_an_end_costs_its_nodes() -> None:
    marked = two_nodes(annotations={DO_NOT_DISRUPT: "true"})
    assert cost_of(LintCode.PROTECTED_FOREVER, node_pools=[node_pool(requirements=RULES)], **marked) == [1.9]


def test_one_node_for_each_pod_costs_the_nodes_that_they_could_share() -> None:
    apart = two_nodes(anti=[affinity_to(WEB)])
    assert cost_of(LintCode.ONE_POD_PER_NODE, node_pools=[node_pool(requirements=RULES)], **apart) == [0.1]


@table(row("heavy", weight=10, cost=[0.9]), row("light", weight=None, cost=[]))
def test_a_preferred_pool_costs_what_the_next_one_would_save(weight: int | None, cost: list[float]) -> None:
    """A pod that is alone on a node of the expensive pool would do on one of the other."""
    pools = [
        node_pool("vip", weight=weight, requirements=[(INSTANCE_TYPE, "In", "big"), *RULES]),
        node_pool("rest", requirements=[(INSTANCE_TYPE, "In", "small"), *RULES]),
    ]
    only = node_of("a", BIG, pool="vip")
    cluster = {"nodes": [only], "node_claims": [claim_for(only)], "pods": [pod(node="a")]}
    assert cost_of(LintCode.DEAR_FAVOURITE, node_pools=pools, **cluster) == cost


def test_a_price_that_is_not_known_makes_the_cost_unknown() -> None:
    unpriced = two_nodes()
    unpriced["nodes"].append(node_of("c", instance_type("mystery", 4)))
    unpriced["node_claims"].append(claim_for(unpriced["nodes"][-1]))
    unpriced["pods"].append(pod("held", node="c", annotations={DO_NOT_DISRUPT: "true"}))
    pool = node_pool(budgets=["0"], requirements=RULES)
    assert cost_of(LintCode.BUDGET_NEVER_OPENS, node_pools=[pool], **unpriced) == [None]
