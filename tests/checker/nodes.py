"""Rules between a pod and one machine: taints, labels, resources, host ports."""

from collections.abc import Iterable, Mapping

from karpool.model.labels import canonical
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.model.scheduling import Taint
from karpool.wire.quantity import ZERO, Quantity
from tests.checker.facts import Amounts, Machine, Option, State, term_holds

ONE = Quantity(10**9)
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - an address to compare, none to bind


def taint_problem(pod: Pod, taints: Iterable[Taint]) -> str | None:
    """The taint that keeps the pod away; PreferNoSchedule keeps nobody away."""
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(t.tolerates(taint) for t in pod.spec.tolerations):
            return f"taint {taint}"
    return None


def label_problem(pod: Pod, option: Option, name: str) -> str | None:
    """Whether node selector and required node affinity fail on the option's labels."""
    labels = option.labels
    for key, value in pod.spec.node_selector.items():
        if labels.get(key, labels.get(canonical(key))) != value:
            return f"node selector {key}={value}"
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return None
    aliased = {**{key: labels[canonical(key)] for key in _keys(pod) if canonical(key) in labels}, **labels}
    if any(term_holds(term, aliased, name) for term in affinity.required.node_selector_terms):
        return None
    return "required node affinity"


def _keys(pod: Pod) -> set[str]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    return {expression.key for term in terms for expression in term.match_expressions}


def requests(pod: Pod) -> dict[str, Quantity]:
    """What a pod takes from a node, itself included."""
    return {**effective_requests(pod), "pods": ONE}


def total(pods: Iterable[Pod]) -> dict[str, Quantity]:
    """What pods take together."""
    return _sum(requests(pod) for pod in pods)


def _sum(listed: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    together: dict[str, Quantity] = {}
    for amounts in listed:
        for key, amount in amounts.items():
            together[key] = together.get(key, ZERO) + amount
    return together


def daemons_of(option: Option, machine: Machine, state: State) -> list[Pod]:
    """The DaemonSets that run a pod on such a machine."""
    return [
        daemon
        for daemon in state.daemons
        if taint_problem(daemon, machine.taints) is None and label_problem(daemon, option, machine.name) is None
    ]


def reserve(option: Option, machine: Machine, state: State) -> dict[str, Quantity]:
    """What DaemonSets will still take: what they need, less what their pods here already have."""
    needed = _sum({**effective_requests(daemon), "pods": ONE} for daemon in daemons_of(option, machine, state))
    running = total(pod for pod in state.pods_on(machine.name) if pod.is_daemon)
    return {key: max(ZERO, amount - running.get(key, ZERO)) for key, amount in needed.items()}


def free(option: Option, machine: Machine, state: State) -> dict[str, Quantity]:
    """What is left on the machine, DaemonSets served."""
    taken = _sum([total(state.pods_on(machine.name)), reserve(option, machine, state)])
    keys = {*option.allocatable, *taken}
    return {key: option.allocatable.get(key, ZERO) - taken.get(key, ZERO) for key in keys}


def resource_problem(pod: Pod, option: Option, machine: Machine, state: State) -> str | None:
    """The resource of which the machine has too little."""
    left = free(option, machine, state)
    for key, amount in sorted(left.items()):
        if amount < ZERO:
            return f"overcommitted {key} already ({amount})"
    return lacking(requests(pod), left)


def lacking(requested: Amounts, left: Amounts) -> str | None:
    """The resource of which there is less than requested."""
    for key, amount in sorted(requested.items()):
        if left.get(key, ZERO) < amount:
            return f"not enough {key}: wants {amount}, {left.get(key, ZERO)} left"
    return None


def port_problem(pod: Pod, option: Option, machine: Machine, state: State, *, cautious: bool) -> str | None:
    """A host port that the pod shares with a pod there, or with a daemon that will come."""
    others = state.pods_on(machine.name)
    if machine.new or cautious:
        others = [*others, *daemons_of(option, machine, state)]
    taken = [port for other in others for port in _host_ports(other)]
    for ip, port, protocol in _host_ports(pod):
        for other_ip, other_port, other_protocol in taken:
            same = (port, protocol) == (other_port, other_protocol)
            if same and (ip == other_ip or EVERY_ADDRESS in (ip, other_ip)):
                return f"host port {port}/{protocol}"
    return None


def _host_ports(pod: Pod) -> list[tuple[str, int, str]]:
    ports = [port for container in pod.spec.containers for port in container.ports if port.host_port]
    return [(EVERY_ADDRESS if p.host_ip in ("", "::") else p.host_ip, p.host_port, p.protocol) for p in ports]
