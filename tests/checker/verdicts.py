"""The verdicts: what is wrong with placements, and where else a pod could go."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from karpool.model.pod import Pod
from karpool.wire.quantity import ZERO, Quantity
from tests.checker.facts import Machine, Placement, State, with_pod_bound
from tests.checker.nodes import label_problem, port_problem, resource_problem, taint_problem
from tests.checker.topology import affinity_problem, anti_affinity_problem, spread_problem
from tests.checker.volumes import attach_problem, claim_problem, reach_problem

ONE = Quantity(10**9)


def violations(state: State, placements: Iterable[Placement]) -> list[str]:
    """What is wrong with placements, each judged by the state that the ones before it left."""
    wrong: list[str] = []
    for placement in placements:
        pod, machine = placement.pod, placement.machine
        if any(bound.pod.key == pod.key for bound in state.bound_pods):
            wrong.append(f"{pod.key}: placed twice")
        if not machine.new and machine.name not in state.machines:
            wrong.append(f"{pod.key}: on {machine.name}, which does not exist")
        if not machine.options:
            wrong.append(f"{pod.key}: on {machine.name}, which no instance type can be")
            continue
        wrong += [f"{pod.key} on {machine.name}: {problem}" for problem in problems(pod, machine, state)]
        if machine.new and machine.name not in state.machines:
            wrong += [f"{machine.name}: {problem}" for problem in limit_problems(machine, state)]
        state = with_pod_bound(state, placement)
    return wrong


def could_place(pod: Pod, state: State) -> list[str]:
    """Machines, and options of new machines, where the pod would be legal now.

    Cautious where the future is open: domains that only a new machine would have count as empty domains, and an
    undecided machine is tried as each thing it could be, while pods on it are nowhere until it is decided.
    """
    if claim_problem(pod, state) is not None:
        return []
    return [
        machine.name if not machine.new else f"{machine.name}: {machine.options[0].name}"
        for machine in _candidates(state)
        if not any(problems(pod, machine, state, cautious=True))
    ]


def _candidates(state: State) -> Iterator[Machine]:
    for machine in state.machines.values():
        for option in machine.options:
            yield replace(machine, options=(option,))
    for template in state.templates:
        for option in template.options:
            opened = replace(template, options=(option,))
            if not limit_problems(opened, state):
                yield opened


def problems(pod: Pod, machine: Machine, state: State, *, cautious: bool = False) -> Iterator[str]:
    """Every rule that the pod would break on the machine, whatever the machine turns out to be."""
    if pod.is_daemon:
        state = replace(state, daemons=())  # a daemon's pod takes the room that is kept for it
    seen: set[str] = set()
    for rule in _rules(pod, machine, state, cautious=cautious):
        problem = rule()
        if problem is not None and problem not in seen:
            seen.add(problem)
            yield problem


def _rules(pod: Pod, machine: Machine, state: State, *, cautious: bool) -> Iterator[Callable[[], str | None]]:
    """The rules, cheap ones first, so that a caller who needs one problem need not wait for all."""
    yield lambda: "is being deleted" if machine.leaving else None
    yield partial(taint_problem, pod, machine.taints)
    for option in machine.options:
        yield partial(label_problem, pod, option, machine.name)
    for option in machine.options:
        yield partial(resource_problem, pod, option, machine, state)
        yield partial(port_problem, pod, option, machine, state, cautious=cautious)
    yield partial(claim_problem, pod, state)
    if claim_problem(pod, state) is None:
        for option in machine.options:
            yield partial(reach_problem, pod, option.labels, state)
        yield partial(attach_problem, pod, machine, state)
    yield partial(anti_affinity_problem, pod, machine, state)
    yield partial(affinity_problem, pod, machine, state, cautious=cautious)
    yield partial(spread_problem, pod, machine, state, cautious=cautious)


def limit_problems(opened: Machine, state: State) -> list[str]:
    """The limits of its pool that one more machine would break, at the largest it can be."""
    limits = state.limits.get(opened.pool, {})
    siblings = [m for m in state.machines.values() if m.options and m.pool == opened.pool and not m.leaving]
    wrong = []
    for key, limit in limits.items():
        used = sum((_largest(machine, key) for machine in (*siblings, opened)), start=ZERO)
        if limit < used:
            wrong.append(f"limit {key} of pool {opened.pool}: {used} of {limit}")
    return wrong


def _largest(machine: Machine, key: str) -> Quantity:
    if key == "nodes":
        return ONE
    return max((option.capacity.get(key, ZERO) for option in machine.options), default=ZERO)
