"""What `explain` says of a node that brakes or rates keep: each once, and what would have to be otherwise."""

from dataclasses import replace as replaced

import msgspec
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, REFERENCE, NodeWithPods, Scenario, ago, node, pool_of
from tests.factories import namespace
from tests.tables import row, table

from karpool.disruption.brakes.ledger import LedgerEntry
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import NodeExplanation, explain_node
from karpool.disruption.plan import context_of
from karpool.model.labels import BUDGETS, DISRUPTIONS, MAX_EVICTIONS, PAUSED
from karpool.model.nodepool import NodePool

USED = [node("a", pods=[{"cpu": "200m"}] * 2), node("b", "large", pods=[{"cpu": 3}])]
DRIFTED = [node("a", pods=[{"cpu": 3}], claim={"drifted": ago(hours=1)})]
SPENT = pool_of(
    annotations={
        DISRUPTIONS: msgspec.json.encode(
            [LedgerEntry(command="c", since=NOW, at=NOW, committed=True, nodes=2, pods={"default": 4})]
        ).decode()
    }
)


def told(nodes: list[NodeWithPods], pool: NodePool, brakes: BrakeSettings, limit: str = "") -> NodeExplanation:
    """Node `a` of a cluster; `limit`: the evictions that its namespace allows in an hour."""
    space = namespace("default")
    space = replace(space, metadata=replace(space.metadata, annotations={MAX_EVICTIONS: limit} if limit else {}))
    settings = replaced(REFERENCE, brakes=brakes)
    made = Scenario("told", nodes=nodes, pools=(pool,), settings=settings, other_objects={"namespaces": (space,)})
    context = context_of(made.objects, made.catalog, now=NOW, settings=settings, options=made.options)
    return explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))


@table(
    row(
        "no node is left",
        pool=SPENT,
        brakes=BrakeSettings(most_nodes_per_hour=2),
        limit="",
        rule="within the rates",
        condition="rates let more go in an hour",
    ),
    row(
        "too few evictions are left",
        pool=SPENT,
        brakes=BrakeSettings(most_evictions_per_hour=5),
        limit="",
        rule="within the rates",
        condition="rates let more go in an hour",
    ),
    row(
        "too few evictions of the namespace are left",
        pool=SPENT,
        brakes=BrakeSettings(),
        limit="5",
        rule="within the rates",
        condition="Namespace default let more of its pods go in an hour",
    ),
    row(
        "the limit of the namespace cannot be read",
        pool=SPENT,
        brakes=BrakeSettings(),
        limit="many",
        rule="within the rates",
        condition="what Namespace default says of Karpool could be read",
    ),
    row(
        "the ledger cannot be read",
        pool=pool_of(annotations={DISRUPTIONS: "?"}),
        brakes=BrakeSettings(),
        limit="",
        rule="no brake holds its pool",
        condition="what NodePool default says of Karpool could be read",
    ),
    row(
        "paused",
        pool=pool_of(annotations={PAUSED: ""}),
        brakes=BrakeSettings(),
        limit="",
        rule="no brake holds its pool",
        condition="NodePool default were not paused",
    ),
    row(
        "not opted in",
        pool=pool_of(),
        brakes=BrakeSettings(opt_in=True),
        limit="",
        rule="no brake holds its pool",
        condition=f"NodePool default had the annotation {BUDGETS}",
    ),
)
def test_a_brake_is_told_once_under_its_own_rule_with_what_would_let_the_node_go(
    pool: NodePool, brakes: BrakeSettings, limit: str, rule: str, condition: str
) -> None:
    made = told(USED, pool, brakes, limit)
    assert [outcome.rule for outcome in made.outcomes if not outcome.passed] == [rule]
    assert [entry.condition for entry in made.alternatives] == [condition]


def test_a_drifted_node_that_a_rate_keeps_names_the_rate_once() -> None:
    made = told(DRIFTED, SPENT, BrakeSettings(most_nodes_per_hour=2))
    failed = {outcome.rule for outcome in made.outcomes if not outcome.passed}
    assert "a budget for Drifted is left" not in failed
    assert {"within the rates", "drift may touch it"} <= failed


def test_an_unhealthy_cluster_is_what_would_have_to_differ() -> None:
    made = told([*USED, *(node(f"x{n}", "large", ready=False) for n in range(4))], pool_of(), BrakeSettings())
    assert [outcome.rule for outcome in made.outcomes if not outcome.passed] == ["no brake holds its pool"]
    assert [entry.condition for entry in made.alternatives] == ["more nodes of the cluster were ready"]
