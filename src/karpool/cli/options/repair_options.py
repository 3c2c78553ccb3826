"""The options of repair: which nodes count as broken, and what is done about them."""

import sys
from typing import Final

import click

from karpool.cli.completions import files
from karpool.disruption.repair.defaults import DEFAULT_POLICIES
from karpool.disruption.repair.policies import RepairPolicies
from karpool.disruption.repair.policy_file import read_policies
from karpool.wire.problems import InputError
from karpool.wire.sources import ManifestSource, display_name, read_source

NODE_REPAIR: Final = "NodeRepair"
TERMINATE_FIRST_REPAIR: Final = "TerminateFirstRepair"
TERMINATE_FIRST_DRIFT: Final = "TerminateFirstDrift"
OPTION: Final = "--repair-policies"

REPAIR_OPTION: Final = click.option(
    OPTION,
    "repair_file",
    metavar="FILE",
    shell_complete=files,
    help=f"Which conditions of Nodes are repaired, and how, with the gate {NODE_REPAIR}; without it, as the provider "
    "says, or nodes that have not been ready for 30 minutes.",
)


def chosen_policies(gates: dict[str, bool], file: str | None) -> RepairPolicies | None:
    """The policies that repair follows; None if it is not asked for."""
    if gates[TERMINATE_FIRST_REPAIR] and not gates[NODE_REPAIR]:
        raise InputError.at("--feature-gates", f"{TERMINATE_FIRST_REPAIR} means nothing without {NODE_REPAIR}=true")
    if not gates[NODE_REPAIR]:
        if file is not None:
            raise InputError.at(OPTION, f"means nothing without --feature-gates {NODE_REPAIR}=true")
        return None
    return DEFAULT_POLICIES if file is None else policies_from(file)


def policies_from(file: str) -> RepairPolicies:
    """The policies of a file, or of standard input."""
    source = ManifestSource(file)
    return read_policies(read_source(source, sys.stdin.buffer), display_name(source))
