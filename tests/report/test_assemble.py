"""Documents of commands with several replacements, from decisions as they are made."""

from dataclasses import replace

from tests.disruption.scenarios import (
    CATALOG,
    NOW,
    ZONES,
    Scenario,
    cluster,
    node,
    pool_of,
)
from tests.factories import instance_type
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.fleet_search.plan_summary import BlockerCost, CurvePoint, LowerBound
from karpool.disruption.plan import context_of
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings
from karpool.model.labels import INSTANCE_TYPE
from karpool.packing.options import Options
from karpool.report.plans.assemble import explanation, plan_document
from karpool.report.plans.document import ExplanationDocument

# Drift replaces the node by as many as its pods need: its pool has become one of small nodes.
DRIFTED = [node("a", "huge", pods=[{"cpu": "1500m"}, {"cpu": "1500m"}], claim={"drifted": True})]
SMALL = pool_of(requirements=[(INSTANCE_TYPE, "In", "small")])


def test_a_plan_names_every_replacement_and_the_pods_that_go_there() -> None:
    (command,) = plan_document(Scenario("several", nodes=DRIFTED, pools=[SMALL]).plan()).commands
    assert [(new.name, new.instance_types) for new in command.replacements] == [
        ("new-1", ("small",)),
        ("new-2", ("small",)),
    ]
    assert sorted((move.pod, move.target) for move in command.placements) == [
        ("default/a-0", "new-1"),
        ("default/a-1", "new-2"),
    ]


def test_a_node_that_goes_says_how_many_replace_it() -> None:
    document = plan_document(Scenario("several", nodes=DRIFTED, pools=[SMALL]).plan())
    assert "is replaced by 2 small (step 1)" in document.nodes[0].reasons[0].message


def test_an_explanation_names_every_replacement_as_where_pods_go() -> None:
    context = context_of(
        cluster(DRIFTED, pools=[SMALL]), CATALOG, now=NOW, settings=DisruptionSettings(), options=Options()
    )
    explained = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    document = explanation(context, explained)
    assert document.verdict == "replace"
    assert [new.name for new in document.replacements] == ["new-1", "new-2"]
    assert {pod.target for pod in document.pods} == {"new-1", "new-2"}
    assert document.alternative == document.replacements[0]


def test_an_explanation_tells_the_plan_from_today() -> None:
    """Either node could go today; in the plan the first takes the pods of the other, and stays."""
    scenario = Scenario("two", nodes=[node(name, pods=[{"cpu": 1}]) for name in "ab"])
    made = scenario.plan(most_steps=None)
    gone = {name for step in made.steps for name in step.command.nodes}
    settings, options = scenario.settings, scenario.options
    told = {}
    for name in "ab":
        context = context_of(scenario.objects, CATALOG, now=NOW, settings=settings, options=options)
        explained = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows[name]))
        told[name] = explanation(context, explained, made)
    for name, document in told.items():
        assert document.alone is not None
        assert document.alone.verdict != "keep"
        assert document.alone.savings_per_hour
        assert document.in_plan is not None
        assert document.in_plan.steps == len(made.steps)
        assert (document.in_plan.step is not None) == (name in gone)
        assert document.in_plan.reasons
    assert len({document.in_plan.verdict for document in told.values() if document.in_plan}) == 2


def test_a_bound_says_how_far_above_it_a_plan_ends() -> None:
    made = Scenario("several", nodes=DRIFTED, pools=[SMALL]).plan()
    bound = LowerBound(made.after.price / 1.25, "LP", (BlockerCost("PodDoNotDisrupt", 0.01, 3),))
    part = plan_document(replace(made, lower_bound=bound)).lower_bound
    assert part is not None
    assert round(part.distance_percent or 0.0, 6) == 25
    assert [(blocker.code, blocker.nodes) for blocker in part.blockers] == [("PodDoNotDisrupt", 3)]
    free = plan_document(replace(made, lower_bound=LowerBound(0.0, "LP"))).lower_bound
    assert free is not None
    assert free.distance_percent is None


def test_where_no_price_is_known_the_least_possible_is_unknown_and_not_zero() -> None:
    made = Scenario("several", nodes=DRIFTED, pools=[SMALL]).plan()
    for unpriced, bound, known in ((4, 0.0, False), (1, 0.0, False), (1, 0.01, True), (0, 0.0, True)):
        before = replace(made.before, nodes=4, unpriced=unpriced)
        document = plan_document(replace(made, before=before, lower_bound=LowerBound(bound, "LP")))
        assert (document.lower_bound is not None) is known


@table(
    row("all known", unpriced=(0, 0), prices=[0.3, 0.1]),
    row("a part known", unpriced=(1, 1), prices=[0.3, 0.1]),
    row("none known", unpriced=(4, 2), prices=[None, None]),
    row("none known at the end", unpriced=(3, 2), prices=[0.3, None]),
)
def test_a_price_that_nobody_knows_is_no_point_of_a_curve(
    unpriced: tuple[int, int], prices: list[float | None]
) -> None:
    made = Scenario("several", nodes=DRIFTED, pools=[SMALL]).plan()
    before, after = (
        replace(totals, nodes=nodes, unpriced=without)
        for totals, nodes, without in zip((made.before, made.after), (4, 2), unpriced, strict=True)
    )
    curve = tuple(CurvePoint(at, price or 0.0) for at, price in enumerate(prices))
    document = plan_document(replace(made, before=before, after=after, curve=curve))
    assert [point.price_per_hour for point in document.curve] == prices


BARGAIN = Catalog((*CATALOG.types, instance_type("bargain", 4, "16Gi", price=0.15, zones=ZONES)))
"""Two small nodes cost 0.2 $/h; alone, neither can be replaced by something cheaper."""


def explained(catalog: Catalog, settings: DisruptionSettings) -> ExplanationDocument:
    """The first of two small nodes, each full with one pod."""
    objects = cluster([node(name, "small", pods=[{"cpu": "1700m"}]) for name in "ab"], pools=[pool_of()])
    context = context_of(objects, catalog, now=NOW, settings=settings, options=Options())
    return explanation(
        context, explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    )


def test_a_node_that_can_go_only_with_another_is_explained_with_it() -> None:
    document = explained(BARGAIN, DisruptionSettings(effort=0))
    assert document.verdict == "replace"
    assert document.group is not None
    assert document.group.nodes == ("a", "b")
    assert round(document.group.savings_per_hour or 0.0, 9) == 0.05
    assert [(pod.pod, pod.target) for pod in document.pods] == [("default/a-0", "new-1")]
    assert [new.instance_type for new in document.replacements] == ["bargain"]
    assert document.unblock == ()


@table(
    row(settings=DisruptionSettings(search=PREFIX), ending="could replace; try --search global"),
    row(settings=DisruptionSettings(search=GLOBAL, effort=0), ending="could replace; try --effort 3"),
    row(settings=DisruptionSettings(search=GLOBAL, effort=3), ending="could replace"),
)
def test_a_node_that_no_set_includes_is_told_what_to_try(settings: DisruptionSettings, ending: str) -> None:
    document = explained(CATALOG, settings)
    assert document.verdict == "keep"
    failed = [rule.reason for rule in document.rules if not rule.passed and rule.reason is not None]
    assert [reason.code for reason in failed] == ["NotCheaper", "NoGroup"]
    assert failed[1].message.endswith(ending)
