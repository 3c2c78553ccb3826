"""The checker can fail: every rule is broken by a doctored history, and by nothing else in it."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.robustness import checker
from tests.robustness.checker.check import check
from tests.robustness.checker.records import Change, Json, Mark, Record, Request, Start
from tests.tables import row, table

EPOCH = "2025-01-06T00:00:00+00:00"
CREATED = "2025-01-06T00:00:00Z"
TICKET = '{"id":"c1","created":"2025-01-06T00:01:40Z","method":"m","cause":"Underutilized","nodes":["n1"]}'
COMMITTED = TICKET[:-1] + ',"committed":true}'
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def pod(name: str = "p1", node: str = "n1", *, ready: bool = True, **metadata: Any) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}, **metadata},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def node(name: str = "n1", *, tainted: bool = False, **metadata: Any) -> Json:
    labels = {"karpenter.sh/nodepool": "general", "karpenter.sh/initialized": "true"}
    return {
        "metadata": {"name": name, "labels": labels, **metadata},
        "spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]} if tainted else {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def claim(name: str = "n1", *, ticket: str = "", **metadata: Any) -> Json:
    annotations = {"karpool.sh/command": ticket} if ticket else {}
    return {
        "metadata": {
            "name": name,
            "labels": {"karpenter.sh/nodepool": "general"},
            "creationTimestamp": CREATED,
            "annotations": annotations,
            **metadata,
        },
        "spec": {},
        "status": {"nodeName": name, "conditions": [{"type": "Initialized", "status": "True"}]},
    }


def pool(budget: str = "1") -> Json:
    return {"metadata": {"name": "general"}, "spec": {"disruption": {"budgets": [{"nodes": budget}]}}}


def pdb(desired: int = 1) -> Json:
    return {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
        "status": {"desiredHealthy": desired, "disruptionsAllowed": 1},
    }


class Story:
    """Builds a history record by record; a minute passes between two steps unless a step says otherwise."""

    def __init__(self) -> None:
        self.records: list[Record] = [Start(seed=0, epoch=EPOCH)]
        self.time = 0.0
        self.put("Lease", "karpool", {"metadata": {"name": "karpool"}, "spec": {"holderIdentity": "me"}})
        self.put("NodePool", "general", pool())
        for name in ("n1", "n2"):
            self.put("Instance", name, {"metadata": {"name": name}})
            self.put("NodeClaim", name, claim(name))
            self.put("Node", name, node(name))
        self.put("Pod", "default/p1", pod())
        self.put("Pod", "default/p2", pod("p2", "n2"))
        self.put("PodDisruptionBudget", "default/a", pdb())

    def wait(self, seconds: float) -> "Story":
        self.time += seconds
        return self

    def put(self, kind: str, key: str, obj: Json | None, by: int = -1) -> "Story":
        self.records.append(Change(self.time, kind, key, obj, by))
        return self

    def ask(self, verb: str, kind: str, key: str, *effects: Json | None, who: str = "me") -> "Story":
        """A request a minute later by a controller that has seen everything, and what it changes."""
        self.wait(60)
        now = len(self.records)
        self.records.append(Request(self.time, who, verb, kind, key, sent=now, view=now, status=200))
        for effect in effects:
            self.put(kind, key, effect, by=now)
        return self

    def removes_node(self, ticket: str = COMMITTED) -> "Story":
        """The way of a sound command, up to the drain."""
        self.ask("patch", "NodeClaim", "n1", claim(ticket=TICKET))
        self.ask("patch", "Node", "n1", node(tainted=True))
        self.ask("patch", "NodeClaim", "n1", claim(ticket=ticket))
        self.ask("delete", "NodeClaim", "n1", claim(ticket=ticket, deletionTimestamp=CREATED))
        return self.ask("delete", "Node", "n1", node(tainted=True, deletionTimestamp=CREATED))

    def drains(self) -> "Story":
        self.ask("evict", "Pod", "default/p1", pod(deletionTimestamp=CREATED))
        self.put("Pod", "default/p1", None).put("Pod", "default/p3", pod("p3", "n2"))
        self.ask("terminate", "Instance", "n1", None)
        return self.ask("patch", "Node", "n1", None).ask("patch", "NodeClaim", "n1", None)

    def ends(self, seconds: float = 2000.0) -> list[Record]:
        self.records.append(Mark(self.time, "quiet"))
        self.wait(seconds)
        return [*self.records, Mark(self.time, "end")]


def broken(records: list[Record]) -> set[str]:
    return {violation.rule for violation in check(records)}


def test_a_sound_command_breaks_no_rule() -> None:
    assert check(Story().removes_node().drains().ends()) == []


PROTECTED: dict[str, Any] = {"annotations": {DO_NOT_DISRUPT: "true"}}


def test_an_eviction_that_a_budget_forbids() -> None:
    story = Story().put("PodDisruptionBudget", "default/a", pdb(2)).removes_node()
    assert broken(story.drains().ends()) == {"PodDisruptionBudget"}


def test_a_deletion_past_a_budget_counts_as_well_unless_the_node_has_a_deadline() -> None:
    def story(**annotations: str) -> list[Record]:
        told = Story().put("PodDisruptionBudget", "default/a", pdb(2)).removes_node()
        late = claim(ticket=COMMITTED, deletionTimestamp=CREATED)
        late["metadata"]["annotations"] |= annotations
        told.put("NodeClaim", "n1", late).ask("delete", "Pod", "default/p1", pod(deletionTimestamp=CREATED))
        return told.records

    assert "PodDisruptionBudget" in broken(story())
    deadline = {"karpenter.sh/nodeclaim-termination-timestamp": CREATED}
    assert "PodDisruptionBudget" not in broken(story(**deadline))


def test_an_eviction_of_a_protected_pod() -> None:
    story = Story().removes_node().put("Pod", "default/p1", pod(**PROTECTED))
    assert broken(story.drains().ends()) == {"DoNotDisrupt"}


def test_the_deletion_of_a_node_that_a_pod_protects() -> None:
    story = Story().put("Pod", "default/p1", pod(**PROTECTED)).removes_node()
    story.put("Pod", "default/p1", pod())
    assert broken(story.drains().ends()) == {"DoNotDisrupt"}


def test_protection_that_came_after_the_pods_were_listed_could_not_be_known() -> None:
    story = Story().ask("patch", "NodeClaim", "n1", claim(ticket=TICKET))
    story.ask("patch", "NodeClaim", "n1", claim(ticket=COMMITTED)).ask("list", "Pod", "n1")
    story.put("Pod", "default/p1", pod(**PROTECTED)).wait(-59)
    story.ask("delete", "NodeClaim", "n1", claim(ticket=COMMITTED, deletionTimestamp=CREATED))
    assert broken(story.records) == {"Progress"}  # the story has no end


def test_a_list_from_before_the_protection_was_there_is_too_old() -> None:
    story = Story().ask("patch", "NodeClaim", "n1", claim(ticket=COMMITTED)).ask("list", "Pod", "n1")
    story.put("Pod", "default/p1", pod(**PROTECTED)).wait(20)
    story.ask("delete", "NodeClaim", "n1", claim(ticket=COMMITTED, deletionTimestamp=CREATED))
    assert "DoNotDisrupt" in broken(story.records)


def test_a_protection_that_has_run_out_protects_nothing() -> None:
    old = pod(annotations={DO_NOT_DISRUPT: "1m"})
    old["status"]["startTime"] = CREATED
    story = Story().put("Pod", "default/p1", old).wait(120).removes_node().drains()
    assert check(story.ends()) == []


def test_a_command_on_a_protected_node() -> None:
    story = Story().put("Node", "n1", node(**PROTECTED)).removes_node()
    assert broken(story.drains().ends()) == {"DoNotDisrupt"}


def test_an_eviction_from_a_node_that_stays() -> None:
    story = Story().ask("evict", "Pod", "default/p1", pod(deletionTimestamp=CREATED)).put("Pod", "default/p1", None)
    story.put("Pod", "default/p3", pod("p3"))
    assert broken(story.ends()) == {"EvictedFromStayingNode"}


def test_a_machine_that_is_ended_with_a_pod_on_it() -> None:
    story = Story().removes_node().ask("terminate", "Instance", "n1", None).put("Pod", "default/p1", None)
    story.ask("patch", "Node", "n1", None).ask("patch", "NodeClaim", "n1", None).put("Pod", "x", pod("p3", "n2"))
    assert broken(story.ends()) == {"PodLost"}


@table(
    row("finished", change={"status": {"phase": "Succeeded"}}),
    row("of a DaemonSet", change={"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}),
    row("tolerant", change={"spec": {"nodeName": "n1", "tolerations": [{"operator": "Exists"}]}}),
)
def test_pods_that_may_go_with_their_node(change: Json) -> None:
    staying = {part: {**value, **change.get(part, {})} for part, value in pod().items()}
    story = Story().put("Pod", "default/p1", staying).removes_node().ask("terminate", "Instance", "n1", None)
    story.put("Pod", "default/p1", None).ask("patch", "Node", "n1", None).ask("patch", "NodeClaim", "n1", None)
    assert check(story.ends()) == []


def test_more_nodes_at_once_than_the_budget_of_their_pool_allows() -> None:
    story = Story().removes_node()
    other = TICKET.replace("c1", "c2").replace("n1", "n2")
    story.ask("patch", "NodeClaim", "n2", claim("n2", ticket=other)).ask("patch", "NodeClaim", "n2", claim("n2"))
    assert broken(story.drains().ends()) == {"Budget"}


def test_a_budget_that_allows_nothing() -> None:
    assert broken(Story().put("NodePool", "general", pool("0")).removes_node().drains().ends()) == {"Budget"}


def test_a_budget_that_was_closed_when_the_controller_could_not_know_is_not_broken() -> None:
    story = Story().wait(100).put("NodePool", "general", pool("0"))
    story.wait(-57)
    assert "Budget" not in broken(story.removes_node().drains().ends())


def test_a_command_in_a_pool_that_is_paused() -> None:
    paused = pool()
    paused["metadata"]["annotations"] = {"karpool.sh/paused": "true"}
    story = Story().put("NodePool", "general", paused).removes_node()
    assert broken(story.drains().put("NodePool", "general", pool()).ends()) == {"Stopped"}


def test_a_command_while_everything_is_paused() -> None:
    pause = {"metadata": {"name": "karpool-pause", "namespace": "karpool"}}
    story = Story().put("ConfigMap", "karpool/karpool-pause", pause).removes_node().drains()
    assert broken(story.put("ConfigMap", "karpool/karpool-pause", None).ends()) == {"Stopped"}


def test_a_command_while_half_of_the_cluster_is_not_ready() -> None:
    story = Story()
    for number in range(3, 10):
        ill = node(f"n{number}")
        ill["status"]["conditions"][0]["status"] = str(number < 6)
        story.put("Node", f"n{number}", ill)
    assert "Stopped" not in broken([*story.records, *Story().removes_node().records[len(Story().records) :]])
    ill = node("n5")
    ill["status"]["conditions"][0]["status"] = "Unknown"
    story.put("Node", "n5", ill).removes_node()
    assert "Stopped" in broken(story.records)


@table(
    row("nodes", limit={"nodesPerHour": 0}),
    row("evictions", limit={"evictionsPerHour": 0}),
)
def test_more_within_an_hour_than_a_rate_allows(limit: Json) -> None:
    records = Story().removes_node().drains().ends()
    assert isinstance(records[0], Start)
    records[0].settings = dict.fromkeys(limit, 1)
    assert check(records) == []
    records[0].settings = limit
    assert broken(records) == {"Rate"}


def test_a_claim_that_is_deleted_before_its_command_is_committed() -> None:
    assert "UnexplainedDeletion" in broken(Story().removes_node(TICKET).drains().ends())


@table(
    row("too young", age=1000.0, found={"UnexplainedDeletion"}),
    row("old enough", age=1900.0, found=set()),
)
def test_a_claim_that_expires(age: float, found: set[str]) -> None:
    expiring: Json = claim()
    expiring["spec"]["expireAfter"] = "30m"
    gone: Json = claim(deletionTimestamp=CREATED)
    story = Story().put("NodeClaim", "n1", expiring).wait(age)
    story.ask("delete", "NodeClaim", "n1", gone).ask("delete", "Node", "n1", node(deletionTimestamp=CREATED))
    assert broken(story.drains().ends()) == found


def test_a_write_of_a_replica_that_does_not_hold_the_lease() -> None:
    story = Story().ask("patch", "Node", "n1", node(), who="other")
    assert broken(story.ends()) == {"Lease"}


def test_a_write_that_was_sent_while_the_lease_was_held_may_arrive_late() -> None:
    story = Story().ask("patch", "Node", "n1", node())
    story.records.insert(-2, Change(story.time, "Lease", "karpool", {"spec": {"holderIdentity": "other"}}))
    assert isinstance(story.records[-2], Request)
    assert isinstance(story.records[-1], Change)
    story.records[-1].by = len(story.records) - 2
    assert check(story.ends()) == []


@table(
    row("taint", kind="Node", key="n1", left=node(tainted=True)),
    row("ticket", kind="NodeClaim", key="n1", left=claim(ticket=TICKET)),
    row("finalizer", kind="Node", key="n1", left=node(deletionTimestamp=CREATED, finalizers=["f"])),
    row("replacement", kind="NodeClaim", key="n1", left=claim(annotations={"karpool.sh/replacement-for": "c0"})),
    row("claim without a node", kind="NodeClaim", key="n9", left=claim("n9")),
    row("node without a claim", kind="Node", key="n9", left=node("n9")),
    row("machine without a node", kind="Instance", key="n9", left={"metadata": {"name": "n9"}}),
)
def test_something_that_is_left_at_the_end(kind: str, key: str, left: Json) -> None:
    story = Story().put("Pod", "default/p9", pod("p9", "n9")).put(kind, key, left)
    assert "LeftOver" in broken(story.ends())
    assert "LeftOver" not in broken(story.ends(300.0))


def test_a_node_that_cannot_go_because_of_a_pod_that_nobody_may_evict_is_for_people_to_decide() -> None:
    story = Story().put("Node", "n1", node(deletionTimestamp=CREATED)).put("Pod", "default/p1", pod(**PROTECTED))
    assert check(story.ends()) == []


def test_a_command_that_began_a_moment_ago_is_not_left_over() -> None:
    story = Story()
    records = story.ends()[:-1]
    records += [Change(story.time, "NodeClaim", "n1", claim(ticket=TICKET)), Mark(story.time, "end")]
    assert check(records) == []


def test_a_pod_that_does_not_run_long_after_the_last_fault() -> None:
    story = Story().put("Pod", "default/p1", pod(ready=False))
    assert broken(story.ends()) == {"Progress"}
    assert broken(story.ends(300.0)) == set()


def test_a_node_that_stays_empty_though_nothing_speaks_for_it() -> None:
    story = Story().put("Pod", "default/p1", None)
    assert broken(story.ends()) == {"Progress"}
    assert check(Story().put("Pod", "default/p1", None).put("NodePool", "general", pool("0")).ends()) == []


def test_a_history_without_a_start_is_refused() -> None:
    with pytest.raises(TypeError, match="starts with its start"):
        check([Mark(0.0, "end")])


def test_the_checker_knows_nothing_of_karpool() -> None:
    allowed = {*sys.stdlib_module_names, "msgspec"}
    for path in Path(checker.__path__[0]).glob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            if isinstance(statement, ast.Import):
                named = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                named = [statement.module or ""]
            else:
                continue
            for module in named:
                assert module.split(".")[0] in allowed or module.startswith("tests.robustness.checker"), path.name
