"""Repair policies as a file holds them: a list under `policies`, with the names of Karpenter's fields."""

import msgspec

from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy, RepairPolicyError
from karpool.wire.fields import explain, unknown_field, unknown_fields
from karpool.wire.objects import Wire, decode_value
from karpool.wire.problems import Flaw, InputError, Problem
from karpool.wire.yaml_documents import YamlError, yaml_documents


class PolicyFile(Wire):
    policies: tuple[RepairPolicy, ...] = ()


def read_policies(text: bytes, file: str, *, legacy: bool = False) -> RepairPolicies:
    """The policies of a file; whatever is wrong with it is an `InputError`."""
    try:
        documents = list(yaml_documents(text))
    except YamlError as error:
        raise InputError.at(file, str(error)) from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError.at(file, "expected one document, a map with a list of policies")
    value = documents[0]
    try:
        listed: PolicyFile = msgspec.convert(value, PolicyFile, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        raise _refused(explain(error, PolicyFile, value), file) from error
    for path, known in unknown_fields(PolicyFile, value):
        raise _refused(unknown_field(path, known), file)
    try:
        return RepairPolicies.checked(listed.policies, legacy=legacy)
    except RepairPolicyError as error:
        raise InputError.at(file, str(error)) from error


def _refused(flaw: Flaw, file: str) -> InputError:
    return InputError(Problem.of(flaw, file=file, about=""))
