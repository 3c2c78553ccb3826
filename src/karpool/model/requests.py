"""What a pod effectively requests from a node."""

from collections.abc import Mapping

from karpool.model.pod import Container, ContainerStatus, Pod
from karpool.wire.quantity import ZERO, Quantity

Amounts = dict[str, Quantity]


def effective_requests(pod: Pod) -> Amounts:
    """The pod's requests as the scheduler counts them: containers, init containers, pod-level values, overhead."""
    spec, status = pod.spec, pod.status
    running: Amounts = {}
    for container in spec.containers:
        _add(running, _requests(container, status.container_statuses))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        wanted = dict(_requests(container, status.init_container_statuses))
        if container.restart_policy == "Always":
            _add(running, wanted)
            _add(sidecars, wanted)
            _raise(starting, sidecars)
        else:
            _add(wanted, sidecars)
            _raise(starting, wanted)
    _raise(running, starting)
    running.update(spec.resources.requests)
    _add(running, spec.overhead)
    return running


def stated_requests(container: Container) -> Mapping[str, Quantity]:
    """What a container asks for; a limit without a request is the request, as an API server would have written it."""
    requests, limits = container.resources.requests, container.resources.limits
    return requests if limits.keys() <= requests.keys() else {**limits, **requests}


def _requests(container: Container, statuses: tuple[ContainerStatus, ...]) -> Mapping[str, Quantity]:
    wanted = stated_requests(container)
    if not statuses:
        return wanted
    for status in statuses:
        if status.name == container.name and (status.allocated_resources or status.resources.requests):
            resized = dict(wanted)
            _raise(resized, {k: v for k, v in status.allocated_resources.items() if k in wanted})
            _raise(resized, {k: v for k, v in status.resources.requests.items() if k in wanted})
            return resized
    return wanted


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def _raise(total: Amounts, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        if total.get(name, ZERO) < amount:
            total[name] = amount
