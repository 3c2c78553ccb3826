"""What a pass of decisions has to respect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from karpool.disruption.brakes.rates import NO_RATES, Rates
from karpool.disruption.brakes.stop import NO_STOPS, Stops
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.settings import DisruptionSettings
from karpool.model.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class Policies:
    """What decisions have to respect: settings, pools, PodDisruptionBudgets, and nodes that are spoken for."""

    pools: Mapping[str, NodePool]
    pdbs: PdbLimits
    settings: DisruptionSettings = field(default_factory=DisruptionSettings)
    in_command: frozenset[str] = frozenset()
    """Nodes of commands that are under way."""
    decided: frozenset[str] = frozenset()
    """Those of them whose commands have not started: they may still be dropped."""
    coming: frozenset[str] = frozenset()
    """Nodes that replace those of such commands and are no more than expected; a command may wait for them."""
    nominated: frozenset[str] = frozenset()
    """Nodes that pods are expected on."""
    destinations: Mapping[str, str] = field(default_factory=dict)
    """By key of a pod that leaves a node of such a command: the node that it is going to."""
    stops: Stops = NO_STOPS
    """What brakes hold: pools whose nodes are not disrupted now."""
    rates: Rates = NO_RATES
    """How many more nodes may be disrupted and pods evicted now."""
    uncertainty: timedelta = timedelta(0)
    """By how much later it may be than the moment that is decided for."""
