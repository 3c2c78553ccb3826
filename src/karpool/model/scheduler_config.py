"""What Karpool has to know of the scheduler's configuration, in the form of Karpenter's `--scheduler-config`."""

from collections.abc import Iterator
from typing import Final

import msgspec

from karpool.model.scheduling import SpreadConstraint
from karpool.wire.fields import explain, unknown_field, unknown_fields
from karpool.wire.objects import Wire, decode_value
from karpool.wire.problems import InputError, Problem
from karpool.wire.yaml_documents import YamlError, yaml_documents

_PATH: Final = "podTopologySpread.defaultConstraints"


class PodTopologySpread(Wire):
    default_constraints: tuple[SpreadConstraint, ...] = ()


class SchedulerConfig(Wire):
    pod_topology_spread: PodTopologySpread = PodTopologySpread()


def read_scheduler_config(text: str, about: str) -> SchedulerConfig:
    """The configuration that a text holds as YAML or JSON; whatever is wrong with it is an `InputError`."""
    if not text.strip():
        return SchedulerConfig()
    try:
        documents = list(yaml_documents(text.encode()))
    except YamlError as error:
        raise InputError.at(about, str(error)) from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError.at(about, f"expected one document, a map with {_PATH}")
    value = documents[0]
    flaws = [
        Problem.of(unknown_field(path, known), file=about, about="")
        for path, known in unknown_fields(SchedulerConfig, value)
    ]
    config = SchedulerConfig()
    try:
        config = msgspec.convert(value, SchedulerConfig, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        flaws.append(Problem.of(explain(error, SchedulerConfig, value), file=about, about=""))
    flaws += [
        Problem(file=about, field=field, message=message)
        for field, message in _checked(config.pod_topology_spread.default_constraints)
    ]
    if flaws:
        raise InputError.of_all(flaws)
    return config


def _checked(constraints: tuple[SpreadConstraint, ...]) -> Iterator[tuple[str, str]]:
    """What breaks a rule that the scheduler has for its defaults: the field, and a sentence."""
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        for flaw in _flaws(constraint):
            yield f"{_PATH}[{index}]", flaw
        if pair in seen:
            yield (
                f"{_PATH}[{index}]",
                f"there are two for {constraint.topology_key} and {constraint.when_unsatisfiable}",
            )
        seen.add(pair)


def _flaws(constraint: SpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew is {constraint.max_skew}; write 1 or more"
    if not constraint.topology_key:
        yield "topologyKey is missing"
    if constraint.label_selector is not None:
        yield "has a labelSelector; the scheduler deduces it for each pod"
    if constraint.match_label_keys:
        yield "has matchLabelKeys; the scheduler deduces the selector for each pod"
