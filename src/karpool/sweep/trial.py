"""A trial: one setting on one input with one seed, and what came of it."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.knob import turned
from karpool.disruption.what_if.question import KnobError, Question
from karpool.packing.options import Options
from karpool.sweep.dimensions import Setting, knobs_of
from karpool.sweep.values import new_flaws, wrong
from karpool.virtual.compare import RunInputs
from karpool.virtual.recorder import RunSummary
from karpool.virtual.scenario import Decisions, Policy, patched
from karpool.workers.processes import Progress


class Trial(NamedTuple):
    setting: Setting
    input: int
    """The number of the input, from 0 on."""
    seed: int


class TrialResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    cost: float
    evictions: int
    """Pods that were evicted, or deleted because a termination grace period had ended."""
    pending_pod_seconds: float
    nodes_launched: int
    node_hours: float
    pods_at_end: int
    pending_pods_at_end: int
    unpriced_node_hours: float
    seconds: float


class Timed(NamedTuple):
    result: TrialResult
    cpu_seconds: float
    """What it took of a processor."""


@dataclass(frozen=True)
class SweepInput:
    """A scenario, snapshot or recording with the policy that settings change."""

    name: str
    inputs: RunInputs
    policy: str

    def question(self) -> Question:
        """The policy as knobs see it."""
        scenario, catalog, initial = self.inputs.scenario, self.inputs.catalog, self.inputs.initial
        policy = scenario.policies[self.policy]
        return Question(
            replace(initial, node_pools=patched(scenario.pools, policy)),
            catalog,
            msgspec.convert(policy.decisions, DisruptionSettings, from_attributes=True),
            Options(ignore_dra_requests=policy.decisions.ignore_dra_requests),
            scenario.start,
        )

    def under(self, setting: Setting) -> RunInputs:
        """What is run under a setting."""
        scenario, before = self.inputs.scenario, self.question()
        try:
            after = turned(before, knobs_of(setting))
        except KnobError as error:
            raise wrong(f"{written(setting)}: {error.args[1]} (in {self.name})") from None
        for pool, flaw in new_flaws(before, after):
            raise wrong(f"{written(setting)}: NodePool {pool.name}: {flaw.field} {flaw.message} (in {self.name})")
        policy = _deciding(scenario.policies[self.policy], before.settings, after.settings)
        changed = replace(scenario, pools=after.objects.node_pools, policies={self.policy: policy})
        return self.inputs._replace(scenario=changed, catalog=after.catalog)


def written(setting: Setting) -> str:
    """A setting in a line."""
    return " ".join(f"{name}={value}" for name, value in setting)


def _deciding(policy: Policy, before: DisruptionSettings, after: DisruptionSettings) -> Policy:
    """The policy with the settings that differ; its changes to pools are in the pools already."""
    names = [name for name in Decisions.__struct_fields__ if hasattr(after, name)]
    values = {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
    plain = {name: str(value) if isinstance(value, str) else value for name, value in values.items()}
    return replace(policy, pools={}, decisions=replace(policy.decisions, **plain))


def run_trial(inputs: tuple[SweepInput, ...], trial: Trial, progress: Progress) -> Timed:
    """Do a trial; it depends on nothing but its arguments."""
    began = time.process_time()
    entry = inputs[trial.input]
    changed = entry.under(trial.setting)
    summary = changed.run((entry.policy, trial.seed), progress).summary
    fee = changed.catalog.node_fee - entry.inputs.catalog.node_fee
    return Timed(_result(summary, fee), time.process_time() - began)


def _result(summary: RunSummary, fee: float) -> TrialResult:
    """What is kept; a fee that only decisions are to count is no money that is spent."""
    priced = summary.node_hours - summary.unpriced_node_hours
    return TrialResult(
        cost=round(summary.cost - fee * priced, 9),
        evictions=(summary.evictions or 0) + (summary.evictions_forced or 0),
        pending_pod_seconds=summary.pending_pod_seconds,
        nodes_launched=summary.nodes_launched,
        node_hours=summary.node_hours,
        pods_at_end=summary.pods_at_end,
        pending_pods_at_end=summary.pending_pods_at_end,
        unpriced_node_hours=summary.unpriced_node_hours,
        seconds=summary.seconds,
    )
