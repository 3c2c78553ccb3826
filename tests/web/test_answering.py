"""What is asked and answered, in the process that works answers out."""

import asyncio
import inspect
import pickle
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.factories import claim_for, node, node_pool, pod
from tests.tables import row, table

from karpool.cli.console_decider import ConsoleDecider
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cluster.node_groups import GroupOptions
from karpool.controller.store import ClusterStore
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.kube.store import Store
from karpool.model.labels import DO_NOT_DISRUPT, PAUSED
from karpool.model.objects import Objects
from karpool.packing.options import Options
from karpool.web.answering import COLLECTIONS, Answering
from karpool.web.answers import Answers
from karpool.web.asking import read_question
from karpool.web.questions import PageQuestion, PlanQuestion, QuestionError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DECIDER = ConsoleDecider(
    CatalogOpener("sample"),
    Choices(settings=DisruptionSettings(search=PREFIX), options=Options(), now=NOW),
    GroupOptions(),
    moves=False,
)


def half_empty() -> ClusterStore:
    """Two nodes whose pods fit on one."""
    store = ClusterStore()
    store.pools.put(node_pool("default"))
    for name in ("a", "b"):
        store.nodes.put(node(name))
        store.claims.put(claim_for(node(name)))
        store.pods.put(pod(f"on-{name}", node=name, cpu="500m", memory="1Gi", labels={"team": name}))
    return store


def silent(_what: str, _done: int, _most: int | None) -> None:
    """Takes progress and says nothing."""


def answers_of(store: ClusterStore, decider: ConsoleDecider = DECIDER) -> Answers:
    answers = Answers(decider)
    for name, collection in COLLECTIONS.items():
        answers.update(collection, {entry.key: entry for entry in getattr(store, name)})
    return answers


def answer(answers: Answers, what: str, **query: str) -> Any:
    return msgspec.json.decode(answers.answer(read_question(what, query), silent))


def test_every_store_of_a_cluster_has_its_collection() -> None:
    stores = {name for name, _ in inspect.getmembers(ClusterStore(), lambda entry: isinstance(entry, Store))}
    assert set(COLLECTIONS) == stores
    assert set(COLLECTIONS.values()) <= set(Objects.__struct_fields__)


def test_objects_are_the_same_on_the_other_side() -> None:
    for store in (getattr(half_empty(), name) for name in COLLECTIONS):
        assert pickle.loads(pickle.dumps(store.listed())) == store.listed()  # noqa: S301 - our own
    assert pickle.loads(pickle.dumps(DECIDER)) == DECIDER  # noqa: S301


def test_a_plan_comes_with_the_cluster_that_it_begins_with() -> None:
    said = answer(answers_of(half_empty()), "plan")
    assert [command["decision"] for command in said["plan"]["commands"]]
    assert len(said["today"]["nodes"]) == 2
    assert len(said["today"]["pods"]) == 2
    assert said["plan"]["after"]["pricePerHour"] < said["plan"]["before"]["pricePerHour"]


def test_a_pod_is_told_who_would_take_it_and_who_would_not() -> None:
    store = half_empty()
    store.nodes.put(node("tainted", taints=["gpu:NoSchedule"]))
    found = answer(answers_of(store), "pod", name="default/on-a")["pod"]
    assert found["node"] == "a"
    assert set(found["nodes"]) == {"a", "b"}
    (refusal,) = found["refusals"]
    assert (refusal["count"], refusal["rule"]) == (1, "Taint")


def test_a_pod_that_waits_does_not_stand_in_its_own_way() -> None:
    """Room is kept for it on the node where it is expected."""
    store = half_empty()
    store.pods.put(pod("waits", cpu="3"))
    answers = answers_of(store)
    found = answer(answers, "pod", name="default/waits")["pod"]
    assert (found["node"], found["fits"], found["nodes"]) == ("", 2, ["a", "b"])
    assert found["would"] in ("a", "b")
    assert found["refusals"] == []
    assert answer(answers, "pod", name="default/waits")["pod"] == found


def test_a_pod_would_be_taken_by_its_own_node_however_full_that_is() -> None:
    store = half_empty()
    store.pods.put(pod("large", cpu="3400m", node="b"))
    store.pods.put(pod("second", cpu="500m", node="a"))
    answers = answers_of(store)
    asked = answer(answers, "node", name="b")
    found = answer(answers, "pod", name="default/large")["pod"]
    assert found["nodes"] == ["b"]
    assert [refusal["count"] for refusal in found["refusals"]] == [1]
    assert answer(answers, "node", name="b") == asked


def test_brakes_are_told_with_the_pool_that_they_hold() -> None:
    store = half_empty()
    store.pools.put(node_pool("default", annotations={PAUSED: "until Monday"}))
    (brake,) = answer(answers_of(store), "plan")["brakes"]
    assert brake.startswith("Nothing of NodePool default is disrupted at this time. Paused: ")
    assert brake.endswith(": until Monday")


def test_a_scenario_says_of_which_cluster_a_snapshot_is_to_be_taken() -> None:
    knobs = '[{"knob": "nodeFee", "value": 1}]'
    named = replace(DECIDER, source=("--context", "prod eu"))
    first = answer(answers_of(half_empty(), named), "what-if", knobs=knobs)["scenario"].splitlines()[0]
    assert first == "# karpool snapshot --context 'prod eu' -o cluster.json.zst && karpool simulate FILE"


def test_a_pod_that_fits_nowhere_is_told_so() -> None:
    store = half_empty()
    store.pods.put(pod("huge", cpu="100"))
    found = answer(answers_of(store), "pod", name="default/huge")["pod"]
    assert (found["would"], found["fits"]) == (None, 0)
    assert "cpu" in found["refusals"][0]["detail"]


def test_a_knob_changes_where_the_plan_ends() -> None:
    answers = answers_of(half_empty())
    said = answer(answers, "what-if", knobs='[{"knob": "nodeFee", "value": 1}]')
    today = answer(answers, "today")["today"]
    assert said["whatIf"]["then"]["priceAfter"] > today["priceAfter"] + 0.9
    assert said["whatIf"]["today"]["priceAfter"] == pytest.approx(today["priceAfter"] + today["nodesAfter"])
    assert said["whatIf"]["nodeFee"] == 1
    assert said["options"] == ["--node-fee=1"]


def test_a_longer_look_is_offered_where_a_quick_one_did_not_look_globally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpool.web.answers.AT_ONCE", 1)
    store, knobs = half_empty(), '[{"knob": "nodeFee", "value": 1}]'
    everywhere = Choices(settings=DisruptionSettings(), options=Options(), now=NOW)
    answers = answers_of(store, ConsoleDecider(CatalogOpener("sample"), everywhere, GroupOptions(), moves=False))
    first, longer = (answer(answers, what, knobs=knobs) for what in ("what-if", "longer-what-if"))
    assert (first["whatIf"]["search"], first["longer"]) == ("prefix", True)
    assert (longer["whatIf"]["search"], longer["longer"]) == ("global, effort 2", False)
    assert longer["whatIf"]["todaySearch"] == "global, effort 2"
    assert answer(answers_of(store), "what-if", knobs=knobs)["longer"] is False


def test_what_a_first_answer_had_no_time_for_comes_before_the_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpool.web.answers.AT_ONCE", 1)
    monkeypatch.setattr("karpool.disruption.what_if.answer.SOON", 1)
    monkeypatch.setattr("karpool.web.answers.FIRST_SECONDS", -1.0)
    everywhere = Choices(settings=DisruptionSettings(), options=Options(), now=NOW)
    decider = ConsoleDecider(CatalogOpener("sample"), everywhere, GroupOptions(), moves=False)
    answers, knobs = answers_of(half_empty(), decider), '[{"knob": "nodeFee", "value": 1}]'
    first = answer(answers, "what-if", knobs=knobs)
    assert (first["whatIf"]["stopped"], first["whatIf"]["then"]["steps"], first["longer"]) == (True, 0, True)
    assert first["whatIf"]["checked"] == {"held": 0, "dropped": 0, "unchecked": 1}
    early: list[bytes] = []
    answers.answer(read_question("longer-what-if", {"knobs": knobs}), silent, early.append)
    [better] = map(msgspec.json.decode, early)
    assert (better["whatIf"]["stopped"], better["longer"]) == (False, True)
    assert better["whatIf"]["checked"] == {"held": 1, "dropped": 0, "unchecked": 0}
    again: list[bytes] = []
    answers.answer(read_question("longer-what-if", {"knobs": knobs}), silent, again.append)
    assert again == []


def test_where_today_ends_is_known_before_a_knob_is_turned() -> None:
    answers = answers_of(half_empty())
    said = answer(answers, "today")
    assert said["search"] == "prefix"
    turned = answer(answers, "what-if", knobs='[{"knob": "evictionPrice", "value": 1}]')
    assert turned["whatIf"]["today"] == said["today"]


def test_a_blocker_is_worth_what_trying_it_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where first answers are given in haste: both are compared with the plan of the Plan view."""
    monkeypatch.setattr("karpool.web.answers.AT_ONCE", 1)
    store = half_empty()
    for name in ("a", "b"):
        store.pods.put(pod(f"on-{name}", node=name, cpu="500m", memory="1Gi", annotations={DO_NOT_DISRUPT: "true"}))
    everywhere = Choices(settings=DisruptionSettings(), options=Options(), now=NOW)
    answers = answers_of(store, ConsoleDecider(CatalogOpener("sample"), everywhere, GroupOptions(), moves=False))
    found = answer(answers, "blockers")["blockers"]
    planned = answer(answers, "plan")["plan"]["after"]["pricePerHour"]
    assert found["today"]["priceAfter"] == pytest.approx(planned)
    tried = [lift for lift in found["blockers"] if lift["computed"] and lift["alone"]]
    assert tried
    for lift in tried:
        turned = answer(answers, "longer-what-if", knobs=msgspec.json.encode(lift["knobs"]).decode())["whatIf"]
        assert turned["today"] == found["today"]
        saved = turned["today"]["priceAfter"] - turned["then"]["priceAfter"]
        assert saved == pytest.approx(lift["savingsPerHour"])


def test_who_asks_again_is_answered_of_the_cluster_of_now() -> None:
    answers = answers_of(half_empty())
    knobs = '[{"knob": "budgetsOff"}]'
    before = answer(answers, "longer-what-if", knobs=knobs)["whatIf"]["today"]
    answers.update("nodes", {"c": node("c")})
    assert answer(answers, "longer-what-if", knobs=knobs)["whatIf"]["today"] == before
    for what in ("what-if", "longer-what-if"):
        then = answer(answers, what, knobs=knobs, since="7")["whatIf"]["today"]
        assert then["nodesBefore"] == before["nodesBefore"] + 1
    found = answer(answers, "blockers", since="7")["blockers"]["today"]
    assert found["nodesBefore"] == before["nodesBefore"] + 1


def test_bounds_of_blockers_are_told_before_their_worth() -> None:
    store = half_empty()
    for name in ("a", "b"):
        store.pods.put(pod(f"on-{name}", node=name, cpu="500m", memory="1Gi", annotations={DO_NOT_DISRUPT: "true"}))
    early: list[bytes] = []
    last = answers_of(store).answer(read_question("blockers", {}), silent, early.append)
    first = msgspec.json.decode(early[0])["blockers"]["blockers"]
    assert {lift["computed"] for lift in first} == {False}
    assert any(lift["computed"] for lift in msgspec.json.decode(last)["blockers"]["blockers"])


def test_blockers_and_costs_are_answered() -> None:
    answers = answers_of(half_empty())
    assert answer(answers, "blockers", by="namespace")["blockers"]["by"] == "namespace"
    costs = answer(answers, "costs", by="label=team")["costs"]
    assert sorted(group["name"] for group in costs["groups"]) == ["a", "b"]


def test_costs_come_as_lines_for_a_spreadsheet_too() -> None:
    head, *lines = answer(answers_of(half_empty()), "costs", by="label=team")["csv"].splitlines()
    assert head.startswith("team,kind,podsBefore")
    assert [line.split(",")[1] for line in lines] == ["label", "label", "headroom", "system", "idle", "total"]


def test_a_plan_comes_with_the_sentences_of_the_terminal() -> None:
    made = answer(answers_of(half_empty()), "plan")
    assert made["words"][0].startswith("This is the least possible")
    assert made["unpriced"] == ""
    store = half_empty()
    store.nodes.put(node("odd", type="x9.large", pool=None))
    said = answer(answers_of(store), "plan")["unpriced"]
    assert said.startswith("1 node of unknown price not counted; --catalog FILE")


def test_pods_that_would_find_no_place_are_told() -> None:
    knobs = '[{"knob": "requests", "workload": "Deployment default/on", "cpu": 100, "memory": 100}]'
    store = half_empty()
    store.pools.put(node_pool("default", limits={"cpu": 8}))
    said = answer(answers_of(store), "what-if", knobs=knobs)["whatIf"]
    assert said["displaced"] == 2
    assert [entry["pod"] for entry in said["unplaced"]] == ["default/on-a", "default/on-b"]
    assert "pool default: limit cpu 8 reached" in said["unplaced"][0]["reasons"][0]["message"]


@table(
    row(what="node", query={"name": "gone"}, says="there is no node gone now"),
    row(what="pod", query={"name": "default/gone"}, says="there is no pod default/gone now"),
    row(what="what-if", query={"knobs": "[{}]"}, says="knobs: each must be an object whose field `knob` says"),
    row(what="what-if", query={"knobs": "not json"}, says="knobs: they are no JSON; write a list such as"),
    row(what="what-if", query={"knobs": '[{"knob": "pdbOff", "name": "a/b"}]'}, says="a/b"),
    row(what="blockers", query={"by": "colour"}, says="is not namespace, workload, or label=KEY"),
    row(what="costs", query={"by": ""}, says="is not namespace, workload, or label=KEY"),
    row(what="moment", query={"at": "2026-01-01T00:00:00Z"}, says="no journal is read"),
)
def test_a_question_without_an_answer_says_why(what: str, query: dict[str, str], says: str) -> None:
    with pytest.raises(QuestionError, match=says):
        answer(answers_of(half_empty()), what, **query)


def test_without_a_journal_there_is_no_timeline() -> None:
    assert answer(answers_of(half_empty()), "timeline") == {"timeline": None, "journal": None}


# -- the process ---------------------------------------------------------------------------------------------------


@dataclass
class Asked:
    store: ClusterStore
    answering: Answering

    async def __call__(self, question: PageQuestion) -> Any:
        async with aclosing(self.answering.ask(question)) as said:
            async for part in said:
                if isinstance(part, bytes):
                    return msgspec.json.decode(part)
        raise AssertionError("no answer")


def play(story: Callable[[Asked], Awaitable[Any]], *, moves: bool = True) -> Any:
    async def run() -> Any:
        store = half_empty()
        answering = Answering(store, dict, DECIDER, moves=moves)
        try:
            return await asyncio.wait_for(story(Asked(store, answering)), 200)
        finally:
            await answering.close()

    return asyncio.run(run())


@pytest.mark.slow
def test_the_process_follows_the_cluster() -> None:
    async def story(ask: Asked) -> list[int]:
        counts = [len((await ask(PlanQuestion()))["today"]["nodes"])]
        ask.store.nodes.put(node("c"))
        ask.answering._kept.clear()
        counts.append(len((await ask(PlanQuestion()))["today"]["nodes"]))
        ask.store.nodes.remove("c")
        ask.answering._kept.clear()
        counts.append(len((await ask(PlanQuestion()))["today"]["nodes"]))
        return counts

    assert play(story) == [2, 3, 2]


@pytest.mark.slow
def test_the_same_question_is_worked_out_once_for_all() -> None:
    async def story(ask: Asked) -> set[str]:
        answers = await asyncio.gather(*(ask(PlanQuestion()) for _ in range(10)))
        assert ask.answering._latest == 1
        return {said["plan"]["time"] for said in answers}

    assert len(play(story)) == 1


@pytest.mark.slow
def test_a_question_that_nobody_waits_for_is_given_up_and_others_are_answered() -> None:
    async def story(ask: Asked) -> int:
        said = ask.answering.ask(read_question("blockers", {}))
        first = asyncio.ensure_future(anext(said))
        await asyncio.sleep(0.5)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await said.aclose()
        assert not ask.answering._pending
        return len((await ask(PlanQuestion()))["today"]["nodes"])

    assert play(story) == 2


def test_a_question_that_is_given_up_before_it_is_put_keeps_nobody_waiting() -> None:
    async def story(ask: Asked) -> str:
        first = asyncio.ensure_future(ask(PlanQuestion()))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(ask(PlanQuestion()))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not ask.answering._pending
        with pytest.raises(QuestionError) as error:
            await second
        return str(error.value)

    assert play(story).endswith("ask again")


@pytest.mark.slow
def test_changes_are_not_kept_for_a_process_that_has_ended() -> None:
    async def story(ask: Asked) -> tuple[int, int]:
        await ask(PlanQuestion())
        process, reader = ask.answering._process, ask.answering._reader
        assert process is not None
        assert reader is not None
        process.kill()
        await reader
        ask.store.pods.put(pod("later", node="a"))
        noted = len(ask.answering._dirty)
        return noted, len((await ask(read_question("costs", {})))["costs"]["groups"])

    assert play(story) == (0, 1)


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_at_the_next_question() -> None:
    async def story(ask: Asked) -> int:
        await ask(PlanQuestion())
        process = ask.answering._process
        assert process is not None
        process.kill()
        await process.wait()
        await asyncio.sleep(0.5)
        ask.answering._kept.clear()
        return len((await ask(PlanQuestion()))["today"]["nodes"])

    assert play(story) == 2


@pytest.mark.slow
def test_an_answer_about_a_file_is_kept() -> None:
    async def story(ask: Asked) -> int:
        await ask(PlanQuestion())
        await ask(PlanQuestion())
        return ask.answering._latest

    assert play(story, moves=False) == 1
