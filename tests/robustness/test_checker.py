"""The checker can fail: every rule is broken by a doctored history, and by nothing else in it."""

import ast
import copy
import json
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


def entry(command: str = "c1", **fields: Any) -> Json:
    return {"command": command, "at": CREATED, "committed": True, "nodes": 1, "pods": {"default": 1}, **fields}


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
        self.pool = pool()
        self.ledger: list[Json] = []
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
        if kind == "NodePool" and obj is not None:
            self.pool = obj
            if self.ledger:
                obj["metadata"].setdefault("annotations", {})["karpool.sh/disruptions"] = json.dumps(self.ledger)
        self.records.append(Change(self.time, kind, key, obj, by))
        return self

    def notes(self, *entries: Json) -> "Story":
        """The ledger of the pool is different from now on."""
        self.ledger = list(entries)
        changed = copy.deepcopy(self.pool)
        changed["metadata"].get("annotations", {}).pop("karpool.sh/disruptions", None)
        return self.put("NodePool", "general", changed)

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
        self.notes(entry())
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
    story = Story().notes(entry()).ask("patch", "NodeClaim", "n1", claim(ticket=TICKET))
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


def owned(name: str, node: str = "n1", **metadata: Any) -> Json:
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    return pod(name, node, ownerReferences=[owner], **({"creationTimestamp": CREATED} | metadata))


def evicts(story: Story, name: str, seconds: float) -> None:
    """A pod of a ReplicaSet is evicted so many seconds later, and gone at once."""
    story.wait(seconds - 60)
    story.ask("evict", "Pod", f"default/{name}", owned(name, deletionTimestamp=CREATED))
    story.put("Pod", f"default/{name}", None)


@table(
    row("while one of eight is away", gone=1, ready=0, seconds=30, rules=set()),
    row("while two of eight are away", gone=2, ready=0, seconds=30, rules={"Pace"}),
    row("when one of two is ready elsewhere", gone=2, ready=1, seconds=30, rules=set()),
    row("long after those that nobody made again", gone=2, ready=0, seconds=90, rules=set()),
)
def test_a_pod_goes(gone: int, ready: int, seconds: float, rules: set[str]) -> None:
    story = Story()
    for number in range(8):
        story.put("Pod", f"default/w{number}", owned(f"w{number}"))
    story.removes_node()
    for number in range(gone):
        evicts(story, f"w{number}", 10)
    for number in range(ready):
        created = f"2025-01-06T00:{int(story.time) // 60 % 60:02}:{int(story.time) % 60:02}Z"
        story.put("Pod", f"default/new{number}", owned(f"new{number}", "n2", creationTimestamp=created))
    evicts(story, f"w{gone}", seconds)
    assert broken(story.records) & {"Pace"} == rules


def test_the_pods_of_all_workloads_together_go_a_few_at_a_time() -> None:
    story = Story()
    for number in range(12):
        made = owned(f"w{number}")
        made["metadata"]["ownerReferences"][0]["name"] = f"web{number}"
        story.put("Pod", f"default/w{number}", made)
    story.removes_node()
    for number in range(12):
        assert "Pace" not in broken(story.records)
        made = owned(f"w{number}", deletionTimestamp=CREATED)
        made["metadata"]["ownerReferences"][0]["name"] = f"web{number}"
        story.wait(-55).ask("evict", "Pod", f"default/w{number}", made).put("Pod", f"default/w{number}", None)
    assert "Pace" in broken(story.records)


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


def test_more_pods_of_a_namespace_than_it_allows_within_an_hour() -> None:
    def limited(text: str) -> list[Record]:
        told = {"metadata": {"name": "default", "annotations": {"karpool.sh/max-evictions-per-hour": text}}}
        return Story().put("Namespace", "default", told).removes_node().drains().ends()

    assert check(limited("1")) == []
    assert broken(limited("0")) == {"Rate"}
    assert broken(limited("a few")) == {"Rate"}


# -- ledgers -----------------------------------------------------------------------------------------------------------


@table(
    row("no entry", entries=[]),
    row("of another command", entries=[entry("c9", at=EPOCH)]),
    row("without its nodes", entries=[entry(nodes=0)]),
    row("with fewer pods", entries=[entry(pods={"shop": 1})]),
)
def test_a_deletion_that_the_ledger_of_its_pool_does_not_have(entries: list[Json]) -> None:
    story = Story().notes(entry()).ask("patch", "NodeClaim", "n1", claim(ticket=TICKET))
    story.ask("patch", "Node", "n1", node(tainted=True)).ask("patch", "NodeClaim", "n1", claim(ticket=COMMITTED))
    story.notes(*entries)
    story.ask("delete", "NodeClaim", "n1", claim(ticket=COMMITTED, deletionTimestamp=CREATED))
    assert "Ledger" in broken(story.records)


def test_a_ledger_that_forgets_within_the_hour() -> None:
    assert check(Story().removes_node().drains().wait(3600).notes().ends()) == []
    assert broken(Story().removes_node().drains().wait(600).notes().ends()) == {"Ledger"}


def test_a_ledger_that_keeps_a_command_which_removed_nothing() -> None:
    assert broken(Story().notes(entry("c0")).ends()) == {"Ledger"}
    recent = Story().notes(entry("c0", at="2025-01-06T00:30:00Z"))
    assert check(recent.ends()) == []


# -- harm --------------------------------------------------------------------------------------------------------------


def of_web(name: str, node_name: str, created: str = CREATED, *, crashes: bool = False) -> Json:
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    made = pod(name, node_name, ready=not crashes, creationTimestamp=created, ownerReferences=[owner])
    if crashes:
        made["status"]["containerStatuses"] = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    return made


def crashing_story(crashed: int, age: float) -> Story:
    """Three pods are moved, of which some crash for so long; then another command starts."""
    story = Story()
    assert isinstance(story.records[0], Start)
    story.records[0].settings = {"looks": 60.0}
    story.put("NodePool", "general", pool("2"))
    for number in range(3):
        story.put("Pod", f"default/w{number}", of_web(f"w{number}", "n1"))
    story.removes_node()
    for number in range(3):
        gone = of_web(f"w{number}", "n1")
        gone["metadata"]["deletionTimestamp"] = CREATED
        story.ask("evict", "Pod", f"default/w{number}", gone).put("Pod", f"default/w{number}", None)
    for number in range(3):
        there = of_web(f"x{number}", "n2", "2025-01-06T00:10:00Z", crashes=number < crashed)
        story.put("Pod", f"default/x{number}", there)
    story.wait(age)
    other = TICKET.replace("c1", "c2").replace("n1", "n2")
    return story.ask("patch", "NodeClaim", "n2", claim("n2", ticket=other))


def test_a_command_in_a_pool_whose_moved_pods_crash() -> None:
    assert "Harm" in broken(crashing_story(3, 1200).records)
    assert "Harm" not in broken(crashing_story(2, 1200).records)
    assert "Harm" not in broken(crashing_story(3, 400).records)


HARMED: dict[str, Any] = {"annotations": {"karpool.sh/harm": "{}"}}


def test_a_command_in_a_pool_that_says_it_has_done_harm() -> None:
    stopped = pool()
    stopped["metadata"] |= copy.deepcopy(HARMED)
    story = Story().put("NodePool", "general", stopped).removes_node().drains()
    assert broken(story.put("NodePool", "general", pool()).ends()) == {"Stopped"}


def test_a_pool_that_is_stopped_for_harm_though_all_pods_have_run_for_long() -> None:
    stopped = pool()
    stopped["metadata"] |= copy.deepcopy(HARMED)
    assert broken(Story().put("NodePool", "general", stopped).ends()) == {"LeftOver"}


def test_a_command_while_a_zone_is_not_ready() -> None:
    def story(unready: int) -> Story:
        told = Story()
        for number in range(3, 9):
            one = node(f"n{number}")
            one["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a" if number < 6 else "b"
            one["status"]["conditions"][0]["status"] = "Unknown" if number < 3 + unready else "True"
            told.put("Node", f"n{number}", one)
        return told.removes_node()

    assert "Stopped" in broken(story(2).records)
    assert "Stopped" not in broken(story(1).records)


# -- the compactor -----------------------------------------------------------------------------------------------------

COMPACTOR: Json = {"compactor": "workers", "atOnce": 1, "drainTimeout": 180.0, "removalTimeout": 360.0}


def worker(name: str = "w1", *, begun: bool = False, cordoned: bool = False, protected: bool = False) -> Json:
    state = json.dumps({"scaleDownInProgress": begun, "lastUpdated": CREATED})
    annotations = {"estafette.io/node-compactor-state": state} | ({DO_NOT_DISRUPT: "true"} if protected else {})
    made = node(name, annotations=annotations)
    made["metadata"]["labels"]["cloud.google.com/gke-nodepool"] = "workers"
    made["spec"]["unschedulable"] = cordoned
    return made


def compacted() -> Story:
    story = Story()
    assert isinstance(story.records[0], Start)
    story.records[0].settings = COMPACTOR
    return story.put("Node", "w1", worker()).put("Node", "w2", worker("w2")).put("Pod", "default/p1", pod(node="w1"))


def scaled_down() -> Story:
    return compacted().ask("patch", "Node", "w1", worker(begun=True, cordoned=True))


def test_a_sound_scale_down_breaks_no_rule() -> None:
    story = scaled_down().ask("evict", "Pod", "default/p1", pod(node="w1", deletionTimestamp=CREATED))
    assert check(story.put("Pod", "default/p1", None).put("Node", "w1", None).ends()) == []


@table(
    row("cordoned by somebody", before=worker(cordoned=True)),
    row("protected", before=worker(protected=True)),
    row("of another pool", before=node("w1")),
)
def test_a_scale_down_of_a_node_that_must_stay(before: Json) -> None:
    story = compacted().put("Node", "w1", before).ask("patch", "Node", "w1", worker(begun=True, cordoned=True))
    assert "Compaction" in broken(story.put("Node", "w1", None).ends())


def test_more_scale_downs_at_once_than_may_be() -> None:
    story = scaled_down().ask("patch", "Node", "w2", worker("w2", begun=True, cordoned=True))
    assert broken(story.put("Node", "w1", None).put("Node", "w2", None).ends()) == {"Compaction"}


def test_a_scale_down_while_everything_is_paused() -> None:
    pause = {"metadata": {"name": "karpool-pause", "namespace": "karpool"}}
    story = compacted().put("ConfigMap", "karpool/karpool-pause", pause)
    story.ask("patch", "Node", "w1", worker(begun=True, cordoned=True)).put("Node", "w1", None)
    assert broken(story.put("ConfigMap", "karpool/karpool-pause", None).ends()) == {"Stopped"}


def test_an_eviction_from_a_node_that_is_not_cordoned() -> None:
    story = compacted().ask("evict", "Pod", "default/p1", pod(node="w1", deletionTimestamp=CREATED))
    assert broken(story.put("Pod", "default/p1", None).ends()) == {"EvictedFromStayingNode"}


def test_an_eviction_by_the_compactor_of_a_pod_that_is_protected_since_some_seconds() -> None:
    """However old the caches are on which it decided."""
    story = scaled_down().put("Pod", "default/p1", pod(node="w1", annotations={DO_NOT_DISRUPT: "true"}))
    story.ask("evict", "Pod", "default/p1", pod(node="w1", deletionTimestamp=CREATED))
    request = story.records[-2]
    assert isinstance(request, Request)
    request.view = 5
    assert broken(story.put("Pod", "default/p1", None).put("Node", "w1", None).ends()) == {"DoNotDisrupt"}


@table(
    row("the mark without its cordon", left=worker(begun=True), found={"LeftOver", "Progress"}),
    row("a scale-down without an end", left=worker(begun=True, cordoned=True), found={"Progress"}),
    row("the cordon without its mark", left=worker(cordoned=True), found={"LeftOver"}),
)
def test_what_the_compactor_leaves_behind(left: Json, found: set[str]) -> None:
    assert broken(scaled_down().put("Node", "w1", left).ends()) == found


# -- deletions, the lease, and the end ---------------------------------------------------------------------------------


def test_a_claim_that_is_deleted_before_its_command_is_committed() -> None:
    assert "UnexplainedDeletion" in broken(Story().removes_node(TICKET).drains().ends())


@table(
    row("used", listed=False, later=False, found=True),
    row("used when its pods were listed", listed=True, later=False, found=True),
    row("used since its pods were listed", listed=True, later=True, found=False),
    row("unused", listed=True, later=None, found=False),
)
def test_a_replacement_that_is_deleted(*, listed: bool, later: bool | None, found: bool) -> None:
    mark = {"karpool.sh/replacement-for": "c1"}
    story = Story().put("NodeClaim", "n1", claim(annotations=mark))
    if later is not False:
        story.put("Pod", "default/p1", None)
    story.wait(100)
    if listed:
        story.ask("list", "Pod", "n1")
    if later:
        story.put("Pod", "default/p4", pod("p4"))
    story.wait(-30)
    story.ask("delete", "NodeClaim", "n1", claim(annotations=mark, deletionTimestamp=CREATED))
    assert ("UnexplainedDeletion" in broken(story.records)) is found


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


def test_an_empty_node_waits_while_a_rate_leaves_no_room_and_not_a_quarter_of_an_hour_longer() -> None:
    def story(seconds: float) -> list[Record]:
        told = Story().removes_node().drains().put("Pod", "default/p2", None).put("Pod", "default/p3", None)
        told.put("Pod", "default/p4", pod("p4", "n3")).put("Instance", "n3", {"metadata": {"name": "n3"}})
        records = told.put("NodeClaim", "n3", claim("n3")).put("Node", "n3", node("n3")).ends(seconds)
        assert isinstance(records[0], Start)
        records[0].settings = {"nodesPerHour": 1}
        return records

    assert check(story(4500.0)) == []
    assert broken(story(5400.0)) == {"Progress"}


def test_a_node_that_stays_empty_in_an_earlier_rest_counts_as_well() -> None:
    records = Story().put("Pod", "default/p1", None).ends()
    records += [Change(3000.0, "Pod", "default/p1", pod()), Mark(3000.0, "quiet"), Mark(5000.0, "end")]
    assert [(violation.rule, violation.time) for violation in check(records)] == [("Progress", 2000.0)]


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
