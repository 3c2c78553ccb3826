"""The shipped admission policies on a real API server: what Karpool's accounts may do passes, all else is refused.

The accounts have all rights here, so that whatever is refused is refused by a policy.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import pytest
from tests.live import manifests
from tests.live.control_plane import ControlPlane
from tests.live.manifests import DEPLOY
from tests.live.trial import MERGE, Trial, pool

from karpool.kube.client import Client
from karpool.kube.errors import ConflictError, ForbiddenError
from karpool.kube.kubeconfig import find_target
from karpool.live import resources as r

CONTROLLER = "system:serviceaccount:karpool:karpool"
COMPACTOR = "system:serviceaccount:estafette:estafette-k8s-node-compactor"
DRY_RUN = {"dryRun": "All"}
IN_PROGRESS = '{"markedForRemoval":true,"scaleDownInProgress":true}'
OWNER = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "u", "blockOwnerDeletion": True}
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
Json = dict[str, Any]


class Write(NamedTuple):
    """A request that changes something, and what it is for a person."""

    what: str
    method: str
    path: str
    body: Json


class PolicyTrial(Trial):
    """A cluster with the policies of a file, and an account that may do everything else."""

    def __init__(self, plane: ControlPlane, file: str, user: str) -> None:
        super().__init__(plane)
        self.documents = manifests.read(DEPLOY / file)
        self.account = Client(find_target(kubeconfig=plane.user_kubeconfig(user, ["system:masters"])))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.account.__aenter__()
        for document in self.documents:
            await manifests.apply(self.client, document)
        return self

    async def __aexit__(self, *failure: object) -> None:
        for document in self.documents:
            await self.client.raw("DELETE", manifests.path_of(document))
        await self.account.__aexit__()
        await super().__aexit__(*failure)

    async def answer(self, write: Write) -> str:
        """Why a write is refused; nothing if it would be done."""
        content = MERGE if write.method == "PATCH" else "application/json"
        body = json.dumps(write.body).encode()
        try:
            await self.account.raw(write.method, write.path, params=DRY_RUN, body=body, content_type=content)
        except ForbiddenError as error:
            return error.message
        return ""

    async def expect_refused(self, write: Write, said: str) -> None:
        """The write is refused with this sentence, once the API server knows the policies."""

        async def refused() -> bool:
            return said in await self.answer(write)

        await self.until(f"refused: {write.what}: {said}", refused, 60)

    async def expect_allowed(self, write: Write) -> None:
        """The write passes, once the API server has seen what it depends on."""
        answers: list[str] = []

        async def allowed() -> bool:
            answers.append(await self.answer(write))
            return not answers[-1]

        try:
            await self.until(f"allowed: {write.what}", allowed, 10)
        except AssertionError as error:
            raise AssertionError(f"{write.what}: {answers[-1]}") from error

    async def expect_others_go_free(self, write: Write) -> None:
        """The policies are about the account alone."""
        content = MERGE if write.method == "PATCH" else "application/json"
        body = json.dumps(write.body).encode()
        await self.client.raw(write.method, write.path, params=DRY_RUN, body=body, content_type=content)


def node(name: str, **spec: Any) -> Json:
    labels = {"karpenter.sh/nodepool": "default", "kubernetes.io/hostname": name}
    size = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"others": "1"}, "finalizers": ["others/one"]},
        "spec": spec,
        "status": {"capacity": size, "allocatable": size},
    }


def pod(name: str, on: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
    }


def taint(key: str) -> Json:
    return {"key": key, "effect": "NoSchedule"}


def change(what: str, path: str, **patch: Any) -> Write:
    return Write(what, "PATCH", path, patch)


def on_node(what: str, name: str = "plain", **patch: Any) -> Write:
    return change(what, f"/api/v1/nodes/{name}", **patch)


def eviction(what: str, name: str, said: str | None, *, managed_by: str = "karpool") -> Write:
    metadata: Json = {"name": name, "namespace": "default", "labels": {"app.kubernetes.io/managed-by": managed_by}}
    if said is not None:
        metadata["annotations"] = {"karpool.sh/evicted-from": said}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    return Write(what, "POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)


def config_map(what: str, namespace: str, name: str, *, key: str = "disruptions") -> Write:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: "[]"}}
    return Write(what, "POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


def removal(what: str, path: str) -> Write:
    return Write(what, "DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]})


CLAIMS = r.NODE_CLAIMS.path()
PODS = "/api/v1/namespaces/default/pods"


def claim(name: str, of: str, uid: str, *, label: str | None = None, **more: Any) -> Json:
    """A NodeClaim whose owner is a pool, and whose label names one."""
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": of, "uid": uid}
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {"karpenter.sh/nodepool": of if label is None else label},
            "annotations": {"karpool.sh/replacement-for": "a"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeClassRef": more.pop("node_class", NODE_CLASS), "requirements": [requirement]},
    }


def creation(what: str, body: Json) -> Write:
    return Write(what, "POST", CLAIMS, body)


NODE_REFUSALS = [
    (Write("create a node", "POST", "/api/v1/nodes", node("new")), "may change nodes, and not create"),
    (removal("delete a node", "/api/v1/nodes/plain"), "may change nodes, and not create"),
    (change("status", "/api/v1/nodes/plain/status", status={"phase": "x"}), "may change nodes, and not create"),
    (on_node("a label", metadata={"labels": {"a": "b"}}), "may not change labels"),
    (on_node("no finalizers", metadata={"finalizers": None}), "finalizers or owners of a node"),
]
ANNOTATION_REFUSALS = [
    on_node("change an annotation", metadata={"annotations": {"others": "2"}}),
    on_node("remove an annotation", metadata={"annotations": {"others": None}}),
    on_node("add an annotation", metadata={"annotations": {"more": "1"}}),
    on_node("an annotation of Karpool", metadata={"annotations": {"karpool.sh/anything": "1"}}),
    on_node("a protection", metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}}),
]


def play(plane: ControlPlane, file: str, user: str, story: Callable[[PolicyTrial], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with PolicyTrial(plane, file, user) as trial:
            await story(trial)

    asyncio.run(scenario())


def test_beside_karpenter_karpool_may_change_its_own_taint_and_annotations_and_touch_no_pod(
    running_cluster: ControlPlane,
) -> None:
    async def story(trial: PolicyTrial) -> None:
        own, others = taint("karpool.sh/disrupted"), taint("others")
        await trial.make(node("plain", taints=[others]), node("leaving", taints=[others, own]), pod("web", "leaving"))
        for write, said in [
            *NODE_REFUSALS,
            *((write, "may not change labels, annotations") for write in ANNOTATION_REFUSALS),
            (on_node("another taint", spec={"taints": [others, taint("mine")]}), "no taint but karpool.sh/disrupted"),
            (on_node("without taints", spec={"taints": []}), "no taint but karpool.sh/disrupted"),
            (on_node("a cordon", spec={"unschedulable": True}), "nothing in the spec of a node but its taint"),
            (on_node("a provider id", spec={"providerID": "x://1"}), "nothing in the spec of a node but its taint"),
            (eviction("evict from its node", "web", "leaving"), "may not create, evict or delete pods"),
            (removal("delete a pod", f"{PODS}/web"), "may not create, evict or delete pods"),
        ]:
            await trial.expect_refused(write, said)
            if write.path.startswith("/api/v1/nodes/plain") and write.method == "PATCH":
                await trial.expect_others_go_free(write)
        for write in (
            on_node("its taint", spec={"taints": [others, own]}),
            on_node("without its taint", "leaving", spec={"taints": [others]}),
        ):
            await trial.expect_allowed(write)

    play(running_cluster, "controller/policy.yaml", CONTROLLER, story)


@pytest.mark.parametrize("file", ["controller/policy.yaml", "controller/policy-kwok.yaml"])
def test_nodeclaims_are_created_only_for_pools_that_there_are(running_cluster: ControlPlane, file: str) -> None:
    async def story(trial: PolicyTrial) -> None:
        await trial.make(pool(), pool("other"))
        uid = (await trial.client.get(r.NODE_POOLS, "default")).metadata.uid
        another = (await trial.client.get(r.NODE_POOLS, "other")).metadata.uid
        ownerless = claim("new", "default", uid)
        del ownerless["metadata"]["ownerReferences"]
        for write, said in (
            (creation("without an owner", ownerless), "for a NodePool only"),
            (creation("label of another pool", claim("new", "default", uid, label="other")), "for a NodePool only"),
            (creation("without a label", claim("new", "default", uid, label="")), "for a NodePool only"),
            (creation("a pool of the past", claim("new", "default", "0")), "is not the NodePool that its label names"),
            (creation("uid of another pool", claim("new", "default", another)), "is not the NodePool that its label"),
            (
                creation("another node class", claim("new", "default", uid, node_class=NODE_CLASS | {"name": "big"})),
                "another node class than its NodePool",
            ),
        ):
            await trial.expect_refused(write, said)
            await trial.expect_others_go_free(write)
        await trial.expect_allowed(creation("a claim of a pool", claim("new", "default", uid)))
        # Of a pool that there never was, the API server cannot know; the garbage collector removes what it owns.
        await trial.account.create(r.NODE_CLAIMS, claim("dangling", "never-was", "0"))

        async def gone() -> bool:
            return not await trial.claims()

        # It looks for kinds that are new to it every half minute.
        await trial.until("the NodeClaim without a pool is gone", gone, 90)

    play(running_cluster, file, CONTROLLER, story)


def test_beside_karpenter_karpool_deletes_only_nodeclaims_of_its_commands_and_changes_nothing_else(
    running_cluster: ControlPlane,
) -> None:
    async def story(trial: PolicyTrial) -> None:
        await trial.make(pool())
        uid = (await trial.client.get(r.NODE_POOLS, "default")).metadata.uid
        theirs, ours = claim("theirs", "default", uid), claim("ours", "default", uid)
        theirs["metadata"]["annotations"] = {"others": "1"}
        await trial.make(theirs, ours)
        pools, status = r.NODE_POOLS.path(name="default"), f"{CLAIMS}/ours/status"
        condition = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        plain = claim("new", "default", uid)
        plain["metadata"]["annotations"] = {}
        for write, said in (
            (removal("delete another's claim", f"{CLAIMS}/theirs"), "only NodeClaims that one of its commands"),
            (creation("for no command", plain), "only as replacements of a command"),
            (change("label", f"{CLAIMS}/ours", metadata={"labels": {"a": "b"}}), "but its own annotations"),
            (change("finalizer", f"{CLAIMS}/ours", metadata={"finalizers": ["a/b"]}), "but its own annotations"),
            *(
                (
                    change(f"annotation {key}", f"{CLAIMS}/theirs", metadata={"annotations": {key: "2"}}),
                    "no annotations",
                )
                for key in ("others", "karpool.sh/anything", "karpool.sh/launched-for", "karpenter.sh/do-not-disrupt")
            ),
            (change("provider id", status, status={"providerID": "x"}), "but the condition DisruptionReason"),
            (
                change("condition", status, status={"conditions": [{"type": "Launched", **condition}]}),
                "but the condition DisruptionReason",
            ),
            (change("limits", pools, spec={"limits": {"cpu": "1"}}), "nothing of a NodePool but its own annotations"),
            (removal("delete a pool", pools), "nothing of a NodePool but its own annotations"),
        ):
            await trial.expect_refused(write, said)
        for write in (
            removal("delete its own claim", f"{CLAIMS}/ours"),
            *(
                change(key, f"{CLAIMS}/theirs", metadata={"annotations": {f"karpool.sh/{key}": "{}"}})
                for key in ("command", "replacement-for", "failed-command", "failed-launch")
            ),
            change("reason", status, status={"conditions": [{"type": "DisruptionReason", **condition}]}),
        ):
            await trial.expect_allowed(write)

    play(running_cluster, "controller/policy.yaml", CONTROLLER, story)


@pytest.mark.parametrize("file", ["controller/policy.yaml", "controller/policy-kwok.yaml"])
def test_karpool_writes_on_a_pool_what_it_remembers_and_leaves_alone_what_people_say(
    running_cluster: ControlPlane, file: str
) -> None:
    async def story(trial: PolicyTrial) -> None:
        said = {"karpool.sh/paused": "upgrade", "karpool.sh/disruptions": "[]", "others": "1"}
        await trial.make(pool() | {"metadata": {"name": "default", "annotations": said}})
        path = r.NODE_POOLS.path(name="default")

        def noted(key: str, value: str | None) -> Write:
            return change(f"{key}: {value}", path, metadata={"annotations": {key: value}})

        for write in (
            noted("karpool.sh/paused", None),
            noted("karpool.sh/paused", "x"),
            noted("karpool.sh/budgets", '[{"nodes":"100%"}]'),
            noted("karpool.sh/minimum-savings", "0"),
            noted("karpool.sh/disruptions2", "[]"),
            noted("others", "2"),
            noted("others", None),
        ):
            await trial.expect_refused(write, "no annotations of a NodePool but karpool.sh/disruptions")
            await trial.expect_others_go_free(write)
        for write in (
            change("limits", path, spec={"limits": {"cpu": "1"}}),
            change("a label", path, metadata={"labels": {"a": "b"}}),
            change("a finalizer", path, metadata={"finalizers": ["a/b"]}),
            removal("delete it", path),
        ):
            await trial.expect_refused(write, "nothing of a NodePool but its own annotations")
        for key in ("karpool.sh/disruptions", "karpool.sh/harm"):
            await trial.expect_allowed(noted(key, "[1]"))
            await trial.expect_allowed(noted(key, None))
        hashed, status = (
            noted("karpenter.sh/nodepool-hash", "1"),
            change("nodes", f"{path}/status", status={"nodes": 1}),
        )
        if "kwok" in file:
            await trial.expect_allowed(hashed)
            await trial.expect_allowed(status)
        else:
            await trial.expect_refused(hashed, "no annotations of a NodePool but karpool.sh/disruptions")
            await trial.expect_refused(status, "nothing of a NodePool but its own annotations")

    play(running_cluster, file, CONTROLLER, story)


def test_with_kwok_karpool_changes_of_nodeclaims_and_nodes_no_annotation_that_people_set(
    running_cluster: ControlPlane,
) -> None:
    async def story(trial: PolicyTrial) -> None:
        protected = node("plain", providerID="kwok://plain")
        protected["metadata"]["annotations"] |= {"karpenter.sh/do-not-disrupt": "true"}
        await trial.make(pool(), protected)
        uid = (await trial.client.get(r.NODE_POOLS, "default")).metadata.uid
        theirs = claim("theirs", "default", uid)
        theirs["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
        await trial.make(theirs)

        def on_claim(key: str, value: str | None) -> Write:
            return change(f"{key}: {value}", f"{CLAIMS}/theirs", metadata={"annotations": {key: value}})

        def noted(key: str, value: str | None) -> Write:
            return on_node(f"{key}: {value}", metadata={"annotations": {key: value}})

        for write, said in (
            (on_claim("karpenter.sh/do-not-disrupt", None), "no annotations of a NodeClaim"),
            (on_claim("karpool.sh/anything", "1"), "no annotations of a NodeClaim"),
            (noted("karpenter.sh/do-not-disrupt", None), "may remove no annotation of a node"),
            (noted("karpenter.sh/do-not-disrupt", "false"), "not change what people say there"),
            (noted("karpool.sh/anything", "1"), "or those under karpool.sh/"),
            (noted("others", None), "may remove no annotation of a node"),
        ):
            await trial.expect_refused(write, said)
            await trial.expect_others_go_free(write)
        for key in (
            "karpool.sh/command",
            "karpool.sh/replacement-for",
            "karpool.sh/failed-command",
            "karpool.sh/failed-launch",
            "karpenter.sh/nodeclaim-termination-timestamp",
        ):
            await trial.expect_allowed(on_claim(key, "1"))
        await trial.expect_allowed(noted("karpenter.sh/nodepool-hash", "1"))
        await trial.expect_allowed(noted("others", "2"))

    play(running_cluster, "controller/policy-kwok.yaml", CONTROLLER, story)


def test_with_kwok_karpool_evicts_only_pods_of_nodes_with_its_taint_and_touches_only_nodes_of_kwok(
    running_cluster: ControlPlane,
) -> None:
    async def story(trial: PolicyTrial) -> None:
        own = taint("karpenter.sh/disrupted")
        await trial.make(
            node("foreign", providerID="aws://1"),
            node("plain", providerID="kwok://plain"),
            node("leaving", providerID="kwok://leaving", taints=[own]),
            pod("stays", "plain"),
            pod("goes", "leaving"),
        )
        await _expect_pods_are_safe(trial, "carry the taint karpenter.sh/disrupted")
        stays = removal("delete from a node that stays", f"{PODS}/stays")
        await trial.expect_refused(stays, "may delete only pods of nodes that carry the taint")
        await trial.expect_others_go_free(stays)
        await trial.expect_allowed(removal("delete from the node that goes", f"{PODS}/goes"))
        for write, said in (
            (
                on_node("a node of another cloud", "foreign", metadata={"labels": {"a": "b"}}),
                "only nodes whose instances are those of kwok",
            ),
            (
                removal("a node of another cloud", "/api/v1/nodes/foreign"),
                "only nodes whose instances are those of kwok",
            ),
            (
                Write("create one", "POST", "/api/v1/nodes", node("new", providerID="aws://2")),
                "only nodes whose instances are those of kwok",
            ),
            (on_node("a cordon", spec={"unschedulable": True}), "nothing in the spec of a node but its taints"),
            (on_node("no finalizers", metadata={"finalizers": None}), "finalizers of others"),
            (on_node("pool", metadata={"labels": {"karpenter.sh/nodepool": "x"}}), "may not change the pool"),
            (
                on_node("an owner", metadata={"ownerReferences": [OWNER | {"kind": "NodePool"}]}),
                "no owner but its NodeClaim",
            ),
        ):
            await trial.expect_refused(write, said)
        for write in (
            Write("create a node", "POST", "/api/v1/nodes", node("new", providerID="kwok://new")),
            removal("delete a node", "/api/v1/nodes/plain"),
            on_node("its taint", spec={"taints": [own]}),
            on_node("a finalizer", metadata={"finalizers": ["others/one", "karpenter.sh/termination"]}),
            on_node("a label", metadata={"labels": {"karpenter.sh/registered": "true"}}),
            on_node("its claim", metadata={"ownerReferences": [OWNER]}),
        ):
            await trial.expect_allowed(write)

    play(running_cluster, "controller/policy-kwok.yaml", CONTROLLER, story)


def test_the_compactor_evicts_only_pods_of_nodes_that_it_cordoned_and_changes_only_its_mark(
    running_cluster: ControlPlane,
) -> None:
    async def story(trial: PolicyTrial) -> None:
        leaving, cordoned = node("leaving", unschedulable=True), node("cordoned", unschedulable=True)
        leaving["metadata"]["annotations"] = {"estafette.io/node-compactor-state": IN_PROGRESS}
        await trial.make(leaving, cordoned, node("plain"), pod("stays", "plain"), pod("goes", "leaving"))
        await trial.make(pod("kept", "cordoned"))
        await _expect_pods_are_safe(trial, "it has cordoned and marked")
        refusals = [
            *NODE_REFUSALS,
            *((write, "may change no annotation") for write in ANNOTATION_REFUSALS),
            (removal("delete a pod", f"{PODS}/goes"), "may evict pods, and do nothing else"),
            (eviction("cordoned by others", "kept", "cordoned"), "only pods of nodes that it has cordoned and marked"),
            (on_node("a taint", spec={"taints": [taint("mine")]}), "nothing in the spec of a node but whether"),
        ]
        with suppress(ConflictError):
            await trial.client.raw("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"estafette"}}')
        refusals += [
            (config_map("another ConfigMap", "default", "other"), "no ConfigMap but karpool-compactor-ledger"),
            (config_map("the pause", "estafette", "karpool-pause"), "no ConfigMap but karpool-compactor-ledger"),
            (config_map("elsewhere", "default", "karpool-compactor-ledger"), "no ConfigMap but"),
            (config_map("another key", "estafette", "karpool-compactor-ledger", key="x"), "only the key disruptions"),
        ]
        for write, said in refusals:
            await trial.expect_refused(write, said)
        for write in (
            config_map("its ledger", "estafette", "karpool-compactor-ledger"),
            on_node("a cordon", spec={"unschedulable": True}),
            on_node("its mark", metadata={"annotations": {"estafette.io/node-compactor-state": IN_PROGRESS}}),
        ):
            await trial.expect_allowed(write)

    play(running_cluster, "compactor/policy.yaml", COMPACTOR, story)


async def _expect_pods_are_safe(trial: PolicyTrial, what: str) -> None:
    """Only the pod `goes` on the node `leaving` may be evicted, and pods are not changed."""
    for write, why in (
        (eviction("from a node that stays", "stays", "plain"), f"only pods of nodes that {what}"),
        (eviction("from a node that stays, with a lie", "stays", "leaving"), "on another node than the eviction says"),
        # Two policies refuse it, and which of them is heard first is up to the API server.
        (eviction("without naming the node", "goes", None), "eviction"),
        (eviction("without its label", "stays", "plain", managed_by="me"), "or lacks its label"),
        (change("change a pod", f"{PODS}/goes", metadata={"labels": {"a": "b"}}), "nothing"),
    ):
        await trial.expect_refused(write, why)
        await trial.expect_others_go_free(write)
    await trial.expect_allowed(eviction("from the node that goes", "goes", "leaving"))


def test_a_policy_that_fails_keeps_nobody_else_from_working() -> None:
    """Parameters are looked up before it is known who asks: it lets pass, or is about Karpool's evictions."""
    for file in ("controller/policy.yaml", "controller/policy-kwok.yaml", "compactor/policy.yaml"):
        documents = manifests.read(DEPLOY / file)
        policies = {entry["metadata"]["name"]: entry["spec"] for entry in documents if entry["kind"].endswith("Policy")}
        bindings = {
            entry["spec"]["policyName"]: entry["spec"] for entry in documents if entry["kind"].endswith("Binding")
        }
        assert policies.keys() == bindings.keys()
        for name, spec in policies.items():
            anybody = "paramKind" in spec and "objectSelector" not in spec["matchConstraints"]
            assert spec["failurePolicy"] == ("Ignore" if anybody else "Fail")
            if "paramKind" in spec:
                assert bindings[name]["paramRef"]["parameterNotFoundAction"] == ("Allow" if anybody else "Deny")
            assert [condition["expression"] for condition in spec["matchConditions"]] == [
                f"request.userInfo.username == '{COMPACTOR if file.startswith('compactor') else CONTROLLER}'"
            ]


COST, OWN_COST = "controller.kubernetes.io/pod-deletion-cost", "karpool.sh/pod-deletion-cost"


@pytest.mark.parametrize("file", ["controller/policy.yaml", "controller/policy-kwok.yaml"])
def test_of_a_pod_only_the_deletion_cost_may_change_and_only_one_that_karpool_wrote(
    running_cluster: ControlPlane, file: str
) -> None:
    async def story(trial: PolicyTrial) -> None:
        notes = {"plain": {"others": "1"}, "theirs": {COST: "5"}, "ours": {COST: "-3", OWN_COST: "-3"}}
        for name, annotations in notes.items():
            made = pod(name, "somewhere")
            await trial.make(made | {"metadata": made["metadata"] | {"annotations": annotations}})

        def noted(name: str, **patch: Any) -> Write:
            return change(f"{name} {patch}", f"{PODS}/{name}", **patch)

        def priced(name: str, cost: str | None) -> Write:
            return noted(name, metadata={"annotations": {COST: cost, OWN_COST: cost}})

        for write, said in (
            (noted("plain", metadata={"annotations": {"others": "2"}}), "nothing of a pod but its deletion cost"),
            (noted("plain", metadata={"annotations": {"others": None}}), "nothing of a pod but its deletion cost"),
            (noted("plain", metadata={"labels": {"a": "b"}}), "nothing of a pod but its deletion cost"),
            (noted("plain", spec={"activeDeadlineSeconds": 1}), "nothing of a pod but its deletion cost"),
            (priced("theirs", "-3"), "a deletion cost that somebody else wrote"),
            (priced("theirs", None), "a deletion cost that somebody else wrote"),
        ):
            await trial.expect_refused(write, said)
            await trial.expect_others_go_free(write)
        for write in (priced("plain", "-2"), priced("ours", "-1"), priced("ours", None)):
            await trial.expect_allowed(write)

    play(running_cluster, file, CONTROLLER, story)
