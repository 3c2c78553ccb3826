"""Static pools keep as many nodes as `replicas` says."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.world import START
from tests.factories import node_claim, node_pool, pod

from karpool.execution.static_pools import headcount, missing_claims, surplus_claims
from karpool.execution.tickets import REPLACES, Ticket
from karpool.model.labels import DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.wire.objects import Condition


def static(replicas: int, **limits: str) -> NodePool:
    return node_pool("fixed", replicas=replicas, limits=limits)


def claim(name: str, *, deleted: bool = False, annotations: dict[str, str] | None = None) -> NodeClaim:
    return node_claim(
        name, pool="fixed", node_name=name, deleted=START if deleted else None, annotations=annotations or {}
    )


def in_command(name: str, *replacements: str, committed: bool = False) -> NodeClaim:
    ticket = Ticket("c", START, "drift", "Drifted", (name,), replacements, committed=committed)
    written = ticket.on(name)
    return claim(name, annotations={written.key: str(written.value)})


@pytest.mark.parametrize(
    ("pool", "claims", "created", "deleted"),
    [
        (static(2), [], 2, 0),
        (static(2), [claim("a"), claim("b")], 0, 0),
        (static(2), [claim("a"), claim("b", deleted=True)], 1, 0),
        (static(2, nodes="2"), [claim("a"), claim("b", deleted=True)], 0, 0),
        (static(9, nodes="3"), [claim("a")], 2, 0),
        (static(0), [claim("a"), claim("b")], 0, 2),
        (static(1), [in_command("a", "r")], 0, 0),
        (static(1), [in_command("a", "r"), claim("r", annotations={REPLACES: "c"})], 0, 0),
        (static(1), [in_command("a", "r", committed=True)], 1, 0),
        (static(1), [in_command("a")], 1, 0),
        (static(1, nodes="1"), [in_command("a")], 0, 0),
        (static(1), [in_command("a", "r"), claim("r", annotations={REPLACES: "c"}), claim("b")], 0, 1),
        (node_pool("fixed"), [claim("a")], 0, 0),
        (static(2), [replace(claim("a"), metadata=replace(claim("a").metadata, labels={}))], 2, 0),
    ],
    ids=[
        "none yet",
        "as wanted",
        "one is going",
        "the limit counts those that go",
        "up to the limit",
        "down to zero",
        "a replacement that is promised counts",
        "one that is there, too",
        "a promise that was not kept does not",
        "a node that goes without a replacement",
        "not beyond the limit meanwhile",
        "replacements are not the surplus",
        "not static",
        "claims of others do not count",
    ],
)
def test_a_static_pool_has_as_many_nodes_as_it_wants(
    pool: NodePool, claims: list[NodeClaim], created: int, deleted: int
) -> None:
    made = missing_claims(pool, claims, (), START)
    gone = surplus_claims(pool, claims, lambda _: (), START)
    assert (len(made), len(gone)) == (created, deleted)
    assert not {entry.name for entry in made} & {entry.name for entry in claims}
    assert headcount(pool, [*claims, *made]).missing(pool) == 0


def test_a_new_node_is_made_from_the_template_alone() -> None:
    pool = node_pool("fixed", replicas=1, labels={"a": "b"}, requirements=[("zone", "In", "z")])
    (made,) = missing_claims(pool, (), (), START)
    assert made.metadata.labels == {"a": "b", **made.metadata.labels, NODEPOOL: "fixed"}
    keys = {entry.key for entry in made.spec.requirements}
    assert "zone" in keys
    assert INSTANCE_TYPE not in keys


def test_a_pool_that_is_not_ready_launches_nothing() -> None:
    pool = static(3)
    conditions = (Condition("Ready", "False", "NodeClassNotFound"),)
    assert missing_claims(replace(pool, status=replace(pool.status, conditions=conditions)), (), (), START) == ()


def test_surplus_nodes_go_in_the_order_in_which_they_are_missed_least() -> None:
    old = replace(
        claim("old"),
        spec=replace(claim("old").spec, expire_after=node_pool(expire_after="10h").spec.template.spec.expire_after),
    )
    old = replace(old, metadata=replace(old.metadata, creation_timestamp=START - timedelta(hours=9)))
    unlaunched = node_claim("z-unlaunched", pool="fixed", launched=False)
    pods: dict[str, list[Pod]] = {
        "guarded": [pod("g", annotations={DO_NOT_DISRUPT: "true"}, node="guarded")],
        "busy": [pod(f"b{number}", node="busy") for number in range(3)],
        "used": [pod("u", node="used")],
        "old": [pod(f"o{number}", node="old") for number in range(3)],
        "daemons": [pod("d", owner="DaemonSet", node="daemons")],
    }
    claims = [*map(claim, ("guarded", "busy", "used", "daemons", "bare")), old, unlaunched]
    gone = surplus_claims(static(0), claims, lambda entry: pods.get(entry.name, ()), START)
    expected = ["z-unlaunched", "bare", "daemons", "old", "used", "busy", "guarded"]
    assert [entry.name for entry in gone] == expected
    fewer = surplus_claims(static(5), claims, lambda entry: pods.get(entry.name, ()), START)
    assert [entry.name for entry in fewer] == expected[:2]


def test_a_node_whose_pods_are_not_known_stays_and_another_one_goes() -> None:
    claims = [claim("a"), claim("b"), claim("c")]
    gone = surplus_claims(static(2), claims, lambda one: None if one.name == "a" else (), START)
    assert [entry.name for entry in gone] == ["b"]
    assert surplus_claims(static(0), claims, lambda _: None, START) == ()
