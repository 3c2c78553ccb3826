"""Validation of scenarios: every flaw with its field and a sentence, before anything runs."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, get_args

import msgspec

from karpool.catalog.instance_types import Catalog
from karpool.compaction.config import parse_config
from karpool.disruption.methods.search import STRATEGIES
from karpool.disruption.repair.policies import repair_flaws
from karpool.disruption.settings import MOST_EVICTION_PRICE, is_eviction_price
from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.labels import CAPACITY_TYPES
from karpool.model.nodepool import NodePool
from karpool.model.rules.capacity_buffers import refused_buffer
from karpool.model.rules.names import is_domain
from karpool.model.rules.pools import controller_flaws, weight_flaws
from karpool.model.rules.workloads import refused_budget
from karpool.model.workloads import PodDisruptionBudget
from karpool.virtual.control_plane.controller_manager import budget_of
from karpool.virtual.curves import DAY, Curve, of_day, seconds
from karpool.virtual.duration_limits import duration_flaws
from karpool.virtual.old_pools import is_old, old_pool_flaws
from karpool.virtual.pod_fields import unknown_pod_fields
from karpool.virtual.policy_checks import pool_flaws
from karpool.virtual.scenario import (
    RECORDED,
    Decisions,
    Fault,
    Scenario,
    ScenarioWorkload,
    Shortage,
    begins_with_cluster,
    no_scenario,
    read_scenario,
)
from karpool.wire.fields import Path, explain, unknown_field, unknown_fields, written_path
from karpool.wire.problems import Flaw, InputError, suggestion
from karpool.wire.yaml_documents import YamlError, yaml_documents

_BOUND: Final = re.compile(r"Expected `\w+` ([<>])= (-?[0-9.]+)")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_INVALID: Final = "Invalid value "
_WHOLE: Final = 100


def flaws(text: bytes) -> Iterator[Flaw]:
    """Everything that is wrong with the text of a scenario; what keeps it from being read comes alone."""
    try:
        old = [flaw for document in yaml_documents(text) for flaw in old_pool_flaws(document)]
        if old:
            yield from old
            return
        scenario = read_scenario(text)
    except YamlError as error:
        yield Flaw("", "Unreadable", str(error))
    except msgspec.ValidationError as error:
        yield _unreadable(error, text)
    else:
        yield from _scenario_flaws(scenario)
        yield from _unknown_flaws(next(yaml_documents(text)))


# -- what cannot be read -------------------------------------------------------------------------------------------


def _unreadable(error: msgspec.ValidationError, text: bytes) -> Flaw:
    documents = list(yaml_documents(text))
    if what := no_scenario(documents):
        return Flaw("", "Unreadable", what)
    flaw = explain(error, Scenario, documents[0])
    unknown = _UNKNOWN.fullmatch(flaw.message)
    for path, known in unknown_fields(Scenario, documents[0]) if unknown is not None else ():
        # What a fault may have depends on its kind.
        if unknown is not None and path[-1] == unknown["name"] and path[0] != "faults":
            return unknown_field(path, known)
    return flaw._replace(message=_in_words(flaw.message))


def _in_words(message: str) -> str:
    if "matching regex" in message:  # only times of day have one
        return "expected a time of day from 00:00 to 24:00, such as 08:30"
    if "of length >= 1" in message:
        return "is empty; list at least one, or leave it out"
    if message.startswith(_INVALID):  # only faults come in kinds
        kinds = ", ".join(str(kind.__struct_config__.tag) for kind in get_args(Fault))
        return f"{message.removeprefix(_INVALID)} is not allowed; use one of {kinds}"
    if unknown := _UNKNOWN.fullmatch(message):
        return f"has no field {unknown['name']}"
    bound = _BOUND.fullmatch(message)
    if bound is not None:
        return f"is out of range; write {float(bound[2]):g} or {'more' if bound[1] == '>' else 'less'}"
    return message


# -- the whole -----------------------------------------------------------------------------------------------------


def _scenario_flaws(scenario: Scenario) -> Iterator[Flaw]:
    yield from duration_flaws(scenario)
    yield from _recording_flaws(scenario)
    if not scenario.pools and not scenario.node_groups and not begins_with_cluster(scenario):
        yield Flaw("pools", "MissingField", "is missing; without pools or nodeGroups there are no nodes")
    yield from _names_flaws("pools", [pool.name for pool in scenario.pools], "metadata.name")
    yield from _names_flaws("nodeGroups", [group.name for group in scenario.node_groups])
    yield from _names_flaws("workloads", [entry.name for entry in scenario.workloads])
    yield from _names_flaws("workloads", [entry.namespace for entry in scenario.workloads], "namespace")
    yield from _duplicate_flaws("pools", (pool.name for pool in scenario.pools))
    yield from _duplicate_flaws("nodeGroups", (group.name for group in scenario.node_groups))
    yield from _duplicate_flaws("workloads", (f"{entry.namespace}/{entry.name}" for entry in scenario.workloads))
    for number, workload in enumerate(scenario.workloads):
        yield from _workload_flaws(workload, f"workloads[{number}]")
    for number, budget in enumerate(scenario.budgets):
        yield from _budget_flaws(budget, f"budgets[{number}].spec")
    for number, buffer in enumerate(scenario.buffers):
        yield from _buffer_flaws(buffer, scenario, f"buffers[{number}]")
    for number, pool in enumerate(scenario.pools):
        for flaw in (*weight_flaws(pool.spec.weight), *controller_flaws(pool)):
            yield flaw._replace(field=f"pools[{number}].{flaw.field}")
    for name, policy in scenario.policies.items():
        yield from _decision_flaws(policy.decisions, written_path(("policies", name, "decisions")))
        for flaw in repair_flaws(policy.repair_policies) if policy.repair_policies else ():
            at = flaw.field.removeprefix("policies")
            yield flaw._replace(field=f"{written_path(('policies', name, 'repairPolicies'))}{at}")
    if not begins_with_cluster(scenario):
        yield from pool_flaws(scenario)


def _recording_flaws(scenario: Scenario) -> Iterator[Flaw]:
    if not scenario.recording:
        return
    if scenario.cluster:
        yield Flaw("cluster", "Recording", "and recording both say with which cluster to start; name one of them")
    if seconds(scenario.warm_up):
        yield Flaw("warmUp", "Recording", "is not needed with a recording, which begins with a cluster that is filled")
    if RECORDED in scenario.policies:
        message = "is what the run of the recorded cluster is called; give the policy another name"
        yield Flaw(written_path(("policies", RECORDED)), "Recording", message)


def _buffer_flaws(buffer: CapacityBuffer, scenario: Scenario, at: str) -> Iterator[Flaw]:
    for flaw in refused_buffer(buffer):
        yield flaw._replace(field=f"{at}.{flaw.field}")
    if not is_domain(buffer.name):
        yield Flaw(f"{at}.metadata.name", "Name", "is missing or no name of an object; write small letters and digits")
    ref = buffer.spec.scalable_ref
    if begins_with_cluster(scenario):
        return
    if ref is None:
        yield Flaw(f"{at}.spec.scalableRef", "CapacityBuffer", "is missing; name one of the scenario's workloads")
        return
    namespace = buffer.metadata.namespace or "default"
    known = [entry.name for entry in scenario.workloads if (entry.kind, entry.namespace) == (ref.kind, namespace)]
    if ref.name not in known:
        message = f"there is no {ref.kind} {ref.name} in namespace {namespace}{suggestion(ref.name, known)}"
        yield Flaw(f"{at}.spec.scalableRef", "CapacityBuffer", message)


def _decision_flaws(decisions: Decisions, at: str) -> Iterator[Flaw]:
    if decisions.search not in STRATEGIES:
        hint = suggestion(decisions.search, STRATEGIES)
        message = f"{decisions.search[:60]!r} is not allowed; use one of {', '.join(sorted(STRATEGIES))}{hint}"
        yield Flaw(f"{at}.search", "Search", message)
    if decisions.eviction_price is not None and not is_eviction_price(decisions.eviction_price):
        message = f"{decisions.eviction_price} is out of range; write $/h from 0 to {MOST_EVICTION_PRICE:,.0f}"
        yield Flaw(f"{at}.evictionPrice", "EvictionPrice", message)


def _names_flaws(field: str, names: Iterable[str], inner: str = "name") -> Iterator[Flaw]:
    for number, name in enumerate(names):
        if not is_domain(name):
            message = f"{name[:60]!r} is no name of an object; write small letters, digits, - and ."
            yield Flaw(f"{field}[{number}].{inner}", "Name", message)


def _duplicate_flaws(field: str, names: Iterable[str]) -> Iterator[Flaw]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Flaw(field, "Duplicate", f"{name} is there {times} times; each needs a name of its own")


# -- workloads -----------------------------------------------------------------------------------------------------


def _workload_flaws(workload: ScenarioWorkload, at: str) -> Iterator[Flaw]:
    if isinstance(workload.replicas, Curve):
        yield from _curve_flaws(workload.replicas, f"{at}.replicas")
    budget = budget_of(workload)
    if budget is not None:
        yield from _budget_flaws(budget, f"{at}.protection")


def _curve_flaws(curve: Curve, at: str) -> Iterator[Flaw]:
    hours = [(hour.at, of_day(hour.at)) for hour in curve.hours]
    yield from _order_flaws(hours, f"{at}.hours", "at")
    if len(hours) > 1 and hours[-1][1] - hours[0][1] == DAY:
        yield Flaw(f"{at}.hours[{len(hours) - 1}].at", "Order", "24:00 is 00:00 of the next day; keep one of them")
    yield from _order_flaws([(str(step.after), seconds(step.after)) for step in curve.steps], f"{at}.steps", "after")


def _order_flaws(times: Iterable[tuple[str, float]], at: str, field: str) -> Iterator[Flaw]:
    for number, ((before, earlier), (after, later)) in enumerate(pairwise(times), start=1):
        if later == earlier:
            yield Flaw(f"{at}[{number}].{field}", "Order", f"{after} is there twice; keep one of them")
        elif later < earlier:
            yield Flaw(f"{at}[{number}].{field}", "Order", f"{after} comes after {before}; list the earlier one first")


def _budget_flaws(budget: PodDisruptionBudget, at: str) -> Iterator[Flaw]:
    for flaw in refused_budget(budget):
        yield flaw._replace(field=f"{at}.{flaw.field.removeprefix('spec.')}")
    for field, amount in (("minAvailable", budget.spec.min_available), ("maxUnavailable", budget.spec.max_unavailable)):
        share = str(amount).removesuffix("%")
        if share != str(amount) and share.isdecimal() and int(share) > _WHOLE:
            yield Flaw(f"{at}.{field}", "PodDisruptionBudget", f"{amount} is more than all; write 0% to 100%")


# -- unknown fields ------------------------------------------------------------------------------------------------


def _unknown_flaws(written: Any) -> Iterator[Flaw]:
    """Fields that would be ignored because they are misspelt."""
    for number, pool in enumerate(written.get("pools") or ()):
        if not is_old(pool):
            yield from _unknown_of_pool(pool, ("pools", number))
    for number, workload in enumerate(written.get("workloads") or ()):
        yield from unknown_pod_fields(workload.get("spec"), ("workloads", number, "spec"))
    for name, policy in (written.get("policies") or {}).items():
        for pool, patch in (policy.get("pools") or {}).items():
            yield from _unknown_of_pool(patch, ("policies", name, "pools", pool))
        yield from _compactor_flaws(policy.get("compactor"), written_path(("policies", name, "compactor")))


def _unknown_of_pool(written: Any, at: Path) -> Iterator[Flaw]:
    for path, known in unknown_fields(NodePool, written):
        if path[0] == "spec" and (len(path) == len(("spec", "field")) or path[1] == "disruption"):
            yield unknown_field((*at, *path), known)


def _compactor_flaws(written: Any, at: str) -> Iterator[Flaw]:
    if written is not None:
        try:
            parse_config(msgspec.json.encode(written))
        except InputError as error:
            problem = error.problem
            yield Flaw(f"{at}.{problem.field}" if problem.field else at, problem.rule, problem.message)


# -- instance types ------------------------------------------------------------------------------------------------


def names_instance_types(scenario: Scenario) -> bool:
    """Whether prices or faults name types or zones that a catalogue may not have."""
    return bool(scenario.prices) or any(
        isinstance(fault, Shortage) and (fault.instance_types or fault.zones) for fault in scenario.faults
    )


def instance_type_flaws(scenario: Scenario, catalog: Catalog) -> Iterator[Flaw]:
    for name in scenario.prices:
        kind, _, capacity_type = name.partition(":")
        at = written_path(("prices", name))
        yield from _unknown_name(kind, catalog.by_name, at, "type")
        if ":" in name and capacity_type not in CAPACITY_TYPES:
            message = f"{capacity_type!r} is not a capacity type; use one of {', '.join(CAPACITY_TYPES)}"
            yield Flaw(at, "CapacityType", message)
    offerings = [offering for entry in catalog.by_name.values() for offering in entry.offerings]
    zones = {offering.zone for offering in offerings}
    for number, fault in enumerate(scenario.faults):
        if isinstance(fault, Shortage):
            for index, kind in enumerate(fault.instance_types):
                yield from _unknown_name(kind, catalog.by_name, f"faults[{number}].instanceTypes[{index}]", "type")
            for index, zone in enumerate(fault.zones):
                yield from _unknown_name(zone, zones, f"faults[{number}].zones[{index}]", "zone")


def _unknown_name(name: str, known: Collection[str], at: str, what: str) -> Iterator[Flaw]:
    if name not in known:
        yield Flaw(at, "UnknownMachine", f"the catalogue has no {what} {name}{suggestion(name, known)}")
