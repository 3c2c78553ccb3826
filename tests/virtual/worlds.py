"""Small virtual clusters for tests: a catalogue of a few types, and scenarios in a few words."""

import msgspec
from tests.virtual.invariants import Invariants

from karpool.catalog.instance_types import Catalog
from karpool.catalog.kwok import kwok_types
from karpool.disruption.settings import PREFIX
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, Policy, Scenario, read_scenario

SIZES = ("c-2x", "c-4x", "c-8x", "s-4x", "m-4x")
CATALOG = Catalog(tuple(t for t in kwok_types() if t.name.endswith("-amd64-linux") and t.name[:4] in SIZES))
HOUR = 3600.0
BY_PREFIXES = Policy(decisions=Decisions(search=PREFIX))
"""For tests of something else than the search for the cheapest fleet: it takes most of the time of a run."""

POOL = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}
"""


def scenario(text: str, *, pools: str = POOL) -> Scenario:
    return read_scenario(pools + text)


def virtual_cluster(text: str, *, pools: str = POOL, seed: int = 0) -> VirtualCluster:
    return VirtualCluster(scenario(text, pools=pools), CATALOG, policy=BY_PREFIXES, seed=seed)


def checked_cluster(text: str, *, pools: str = POOL, seed: int = 0) -> tuple[VirtualCluster, Invariants]:
    cluster = virtual_cluster(text, pools=pools, seed=seed)
    return cluster, Invariants(cluster)


def pods_of(cluster: VirtualCluster, app: str) -> list[str]:
    return [pod.name for pod in cluster.store.pods if pod.metadata.labels.get("app.kubernetes.io/name") == app]


def changed(original: Scenario, **fields: object) -> Scenario:
    return msgspec.structs.replace(original, **fields)
