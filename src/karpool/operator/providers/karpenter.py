"""Karpool beside an installed Karpenter, which launches and terminates NodeClaims.

Budgets of `nodes: "0"` switch Karpenter's own disruption off, so Karpool reads its budgets from the annotation
`karpool.sh/budgets`. The taint is Karpool's own, because Karpenter removes its taint from nodes that it is not
disrupting. Provisioning, registration, conditions, hashes and drains are left to Karpenter.
"""

from dataclasses import replace
from typing import Final

from karpool.controller.ports import Duties
from karpool.operator.observed_catalog import ObservedCatalog
from karpool.operator.providers.protocol import Provider, ProviderContext

TAINT: Final = "karpool.sh/disrupted"


def provider(context: ProviderContext) -> Provider:
    return Provider(
        catalog_source=ObservedCatalog(context.caches.store, context.catalog_for),
        duties=Duties(provisions=False, manages_lifecycle=False),
        execution=replace(context.execution, taint_key=TAINT, terminates=False),
        annotated_budgets=True,
    )
