from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.factories import Z1, Z2, Rule, instance_type, node_claim, node_pool

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.drift_detection import TYPE_CHECKED_AFTER, drift_of
from karpool.disruption.candidates.node_facts import DRIFT_REFRESH, NodeFactsCache
from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    SPOT,
    ZONE,
)
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
LABELS = {INSTANCE_TYPE: "m", ARCH: "amd64", ZONE: Z1, CAPACITY_TYPE: ON_DEMAND, "generation": "6", "team": "shop"}


def claim(**rest: Any) -> NodeClaim:
    return node_claim(**{"node_name": "n1", "labels": LABELS, **rest})


def catalog(*offers: tuple[str, str], name: str = "m") -> Catalog:
    return Catalog((instance_type(name, offers=[(kind, zone, 0.1) for kind, zone in offers]),))


def code(found: NodeClaim, pool: Any, types: Catalog | None = None) -> str | None:
    drift = drift_of(found, pool, types, NOW)
    return None if drift is None else drift.reason.code


def hashed(value: str | None, version: str | None = "v3") -> dict[str, str]:
    written = {NODEPOOL_HASH: value, NODEPOOL_HASH_VERSION: version}
    return {key: text for key, text in written.items() if text is not None}


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (hashed("1"), hashed("1"), None),
        (hashed("1"), hashed("2"), "NodePoolDrifted"),
        (hashed("1", "v2"), hashed("2", "v3"), None),
        (hashed("1", None), hashed("2", None), None),
        (hashed("1", None), hashed("2"), None),
        (hashed(None), hashed("2"), None),
        (hashed("1"), hashed(None), None),
        ({}, {}, None),
    ],
)
def test_stored_hashes_of_one_version_are_compared(
    ours: dict[str, str], theirs: dict[str, str], expected: str | None
) -> None:
    for replicas in (None, 3):
        assert code(claim(annotations=ours), node_pool(annotations=theirs, replicas=replicas)) == expected


@pytest.mark.parametrize(
    ("rule", "drifted"),
    [
        ((ARCH, "In", "amd64"), False),
        ((ARCH, "In", "amd64", "arm64"), False),
        ((ARCH, "In", "arm64"), True),
        ((ARCH, "Exists"), False),
        ((ARCH, "DoesNotExist"), True),
        ((ARCH, "NotIn", "arm64"), False),
        ((ARCH, "NotIn", "amd64"), True),
        (("beta.kubernetes.io/arch", "In", "arm64"), True),
        (("generation", "Gt", "5"), False),
        (("generation", "Gt", "6"), True),
        (("generation", "Gte", "6"), False),
        (("generation", "Lt", "6"), True),
        (("team", "Gt", "1"), True),
        (("new", "In", "x"), True),
        (("new", "Exists"), True),
        (("new", "NotIn", "x"), False),
        (("new", "DoesNotExist"), False),
    ],
)
def test_narrower_requirements_drift_and_wider_ones_do_not(rule: Rule, *, drifted: bool) -> None:
    assert code(claim(), node_pool(requirements=[rule])) == ("RequirementsDrifted" if drifted else None)


def test_the_reason_names_the_key_and_what_the_node_has() -> None:
    drift = drift_of(claim(), node_pool(requirements=[(ARCH, "In", "arm64")]), None, NOW)
    assert drift is not None
    assert drift.since == NOW
    assert drift.reason.object == "Node n1"
    assert drift.reason.message == "NodePool default wants kubernetes.io/arch In [arm64], and the node's is amd64"


@pytest.mark.parametrize(
    ("labels", "offers", "drifted"),
    [
        ({}, [(ON_DEMAND, Z1)], False),
        ({}, [(SPOT, Z1), (ON_DEMAND, Z2)], True),
        ({}, [], True),
        ({CAPACITY_TYPE: RESERVED, RESERVATION_ID: "r-1"}, [(RESERVED, Z1)], False),
        ({CAPACITY_TYPE: RESERVED, RESERVATION_ID: "r-1"}, [(ON_DEMAND, Z1)], False),
        ({CAPACITY_TYPE: RESERVED}, [(SPOT, Z1)], True),
        ({INSTANCE_TYPE: "gone"}, [(ON_DEMAND, Z1)], True),
    ],
)
def test_a_type_that_is_no_longer_sold_drifts(
    labels: dict[str, str], offers: list[tuple[str, str]], *, drifted: bool
) -> None:
    found = code(claim(labels={**LABELS, **labels}), node_pool(), catalog(*offers))
    assert found == ("InstanceTypeNotFound" if drifted else None)


def test_an_offering_that_is_unavailable_now_is_still_sold() -> None:
    sold = instance_type("m", offers=[(ON_DEMAND, Z1, 0.1)], unavailable=[(ON_DEMAND, Z1)])
    assert code(claim(), node_pool(), Catalog((sold,))) is None


def test_a_node_whose_type_nobody_knows_has_not_drifted() -> None:
    unlabelled = {key: value for key, value in LABELS.items() if key != INSTANCE_TYPE}
    assert code(claim(labels=unlabelled), node_pool(), catalog((ON_DEMAND, Z1))) is None


@pytest.mark.parametrize(
    ("age", "expected"), [(timedelta(hours=1), None), (timedelta(hours=1, seconds=1), "InstanceTypeNotFound")]
)
def test_types_are_looked_up_only_for_claims_older_than_an_hour(age: timedelta, expected: str | None) -> None:
    assert code(claim(created=NOW - age), node_pool(), catalog(name="other")) == expected


@pytest.mark.parametrize("types", [None, Catalog(())])
def test_without_a_catalogue_no_type_counts_as_gone(types: Catalog | None) -> None:
    assert code(claim(), node_pool(), types) is None


def test_the_condition_of_a_claim_counts_with_its_reason_and_time() -> None:
    since = NOW - timedelta(days=2)
    stored = Condition(
        type="Drifted", status="True", reason="AMIDrifted", message="a newer image", last_transition_time=since
    )
    found = claim()
    marked = msgspec.structs.replace(
        found, status=msgspec.structs.replace(found.status, conditions=(*found.status.conditions, stored))
    )
    drift = drift_of(marked, node_pool(), None, NOW)
    assert drift is not None
    assert (drift.reason.code, drift.reason.message, drift.since) == ("AMIDrifted", "a newer image", since)


def test_facts_speak_before_the_condition_but_its_time_is_kept() -> None:
    since = NOW - timedelta(days=2)
    drift = drift_of(claim(drifted=since), node_pool(requirements=[(ARCH, "In", "arm64")]), None, NOW)
    assert drift is not None
    assert (drift.reason.code, drift.since) == ("RequirementsDrifted", since)


@pytest.mark.parametrize(
    "rest",
    [{"deleted": NOW}, {"launched": False}, {"deleted": NOW, "drifted": True}, {"launched": False, "drifted": True}],
)
def test_claims_that_leave_or_have_not_launched_do_not_drift(rest: dict[str, Any]) -> None:
    assert code(claim(**rest), node_pool(requirements=[(ARCH, "In", "arm64")])) is None


def test_a_claim_whose_pool_is_gone_does_not_drift() -> None:
    assert code(claim(drifted=True), None) is None


def test_a_node_drifts_by_its_age_alone() -> None:
    labels = {**LABELS, NODEPOOL: "default"}
    young = claim(labels=labels, created=NOW - TYPE_CHECKED_AFTER)
    snapshot = Snapshot(Objects(node_claims=(young,), node_pools=(node_pool(),)))
    facts = NodeFactsCache(snapshot.nodes, {"default": node_pool()}, catalog(name="other"), complete=True)
    for after, drifted in ((timedelta(0), 0), (timedelta(minutes=4), 0), (DRIFT_REFRESH, 1)):
        facts.refresh(NOW + after)
        assert facts.drifted().tolist()[:1] == [drifted]
        assert (facts.drift(0) is not None) == bool(drifted)


def test_a_node_is_known_to_have_drifted_since_it_was_last_looked_at() -> None:
    old = claim(labels={**LABELS, NODEPOOL: "default"})
    pool = node_pool(requirements=[(ARCH, "In", "arm64")])
    facts = NodeFactsCache(Snapshot(Objects(node_claims=(old,))).nodes, {"default": pool}, catalog(), complete=False)
    for now, since in ((NOW, NOW), (NOW + timedelta(minutes=4), NOW), (NOW + DRIFT_REFRESH, NOW + DRIFT_REFRESH)):
        facts.refresh(now)
        drift = facts.drift(0)
        assert drift is not None
        assert drift.since == since
