"""What a pod effectively requests from a node."""

from collections.abc import Mapping

from karpool.model.pod import Amounts, Container, ContainerStatus, Pod, PodSpec
from karpool.wire.quantity import ZERO, Quantity


def effective_requests(pod: Pod) -> Amounts:
    """The pod's requests as the scheduler counts them: containers, init containers, pod-level values, overhead."""
    spec, status = pod.spec, pod.status
    running: Amounts = {}
    for container in spec.containers:
        _add(running, _requests(container, status.container_statuses))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        requests = dict(_requests(container, status.init_container_statuses))
        if container.restart_policy == "Always":
            _add(running, requests)
            _add(sidecars, requests)
            _raise(starting, sidecars)
        else:
            _add(requests, sidecars)
            _raise(starting, requests)
    _raise(running, starting)
    whole = _resized(_stated_for_the_pod(spec), status.allocated_resources, status.resources.requests)
    running.update(whole)
    _add(running, spec.overhead)
    return running


def stated_requests(container: Container) -> Mapping[str, Quantity]:
    """The requests of a container; a limit without a request is the request, as an API server would have written it."""
    requests, limits = container.resources.requests, container.resources.limits
    return requests if limits.keys() <= requests.keys() else {**limits, **requests}


def _stated_for_the_pod(spec: PodSpec) -> Mapping[str, Quantity]:
    """The requests of a pod as a whole; a limit is the request where no container states one of its own."""
    requests, limits = spec.resources.requests, spec.resources.limits
    if limits.keys() <= requests.keys():
        return requests
    own = {name for container in (*spec.containers, *spec.init_containers) for name in stated_requests(container)}
    return {**{name: amount for name, amount in limits.items() if name not in own}, **requests}


def _requests(container: Container, statuses: tuple[ContainerStatus, ...]) -> Mapping[str, Quantity]:
    requests = stated_requests(container)
    if not statuses:
        return requests
    for status in statuses:
        if status.name == container.name and (status.allocated_resources or status.resources.requests):
            return _resized(requests, status.allocated_resources, status.resources.requests)
    return requests


def _resized(requests: Mapping[str, Quantity], *given: Mapping[str, Quantity]) -> Amounts:
    """Requests that are being changed in place: as much as is asked for, was allocated, or is in use."""
    resized = dict(requests)
    for amounts in given:
        _raise(resized, {name: amount for name, amount in amounts.items() if name in requests})
    return resized


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def _raise(total: Amounts, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        if total.get(name, ZERO) < amount:
            total[name] = amount
