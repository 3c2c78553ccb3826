"""Karpool beside an installed Karpenter, which launches and ends what NodeClaims ask for.

Karpenter's own disruption is switched off by the pools' budgets (`nodes: "0"`), so those that Karpool goes by stand in
the annotation `karpool.sh/budgets`. The taint is Karpool's own, because Karpenter takes its own off nodes that it is
not disrupting. Pods that wait, registration, marks, hashes and drains are Karpenter's.
"""

from dataclasses import replace
from typing import Final

from karpool.controller.ports import Duties
from karpool.operator.observed_catalog import ObservedCatalog
from karpool.operator.providers.protocol import Provider, ProviderContext

TAINT: Final = "karpool.sh/disrupted"


def provider(ground: ProviderContext) -> Provider:
    """The provider for a cluster that Karpenter runs."""
    return Provider(
        offers=ObservedCatalog(ground.caches.store, ground.catalog_for),
        duties=Duties(provisions=False, tends=False),
        execution=replace(ground.execution, taint_key=TAINT, terminates=False),
        annotated_budgets=True,
    )
