"""What Karpool has to know of the scheduler's configuration, in the form of Karpenter's `--scheduler-config`."""

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
    try:
        config: SchedulerConfig = msgspec.convert(value, SchedulerConfig, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        raise InputError(Problem.of(explain(error, SchedulerConfig, value), file=about, about="")) from error
    for path, known in unknown_fields(SchedulerConfig, value):
        raise InputError(Problem.of(unknown_field(path, known), file=about, about=""))
    _check(config.pod_topology_spread.default_constraints, about)
    return config


def _check(constraints: tuple[SpreadConstraint, ...], about: str) -> None:
    """The rules of the scheduler for its defaults."""
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        flaw = _flaw(constraint)
        if (constraint.topology_key, constraint.when_unsatisfiable) in seen:
            flaw = f"there are two for {constraint.topology_key} and {constraint.when_unsatisfiable}"
        if flaw:
            raise InputError.at(about, flaw, field=f"{_PATH}[{index}]")
        seen.add((constraint.topology_key, constraint.when_unsatisfiable))


def _flaw(constraint: SpreadConstraint) -> str:
    if constraint.max_skew <= 0:
        return f"maxSkew is {constraint.max_skew}; write 1 or more"
    if not constraint.topology_key:
        return "topologyKey is missing"
    if constraint.label_selector is not None:
        return "has a labelSelector; the scheduler deduces it for each pod"
    if constraint.match_label_keys:
        return "has matchLabelKeys; the scheduler deduces the selector for each pod"
    return ""
