"""Which test executes which of the shown commands: the tests take theirs from here, so that none is forgotten."""

from typing import Final

from tests.documentation.commands import Command, shown
from tests.documentation.elsewhere import reason

READS_A_CLUSTER: Final = {"plan", "explain", "blockers", "budgets", "lint", "snapshot", "compact", "crds"}
SERVES: Final = {"run", "ui", "compact", "record"}
"""Commands of Karpool that go on until they are stopped; a plan of the compactor does not."""


def serves(command: Command) -> bool:
    words = command.words
    return words[0] == "karpool" and words[1] in SERVES and not {"--plan", "--help"} & set(words)


def in_a_cloud(command: Command) -> bool:
    return command.words[:3] == ["karpool", "catalog", "update"]


def on_a_cluster(command: Command) -> bool:
    words = command.words
    if words[0] in {"helm", "scripts/ensure-kubernetes"} or "kubectl" in command.text.split():
        return True
    if words[0] != "karpool" or in_a_cloud(command) or "-f" in words:
        return False
    if "--fleet" in words:
        return words[words.index("--fleet") + 1] == "contexts"
    return serves(command) or words[1] in READS_A_CLUSTER


COMMANDS: Final = tuple(shown())
EXECUTED: Final = tuple(command for command in COMMANDS if reason(command.text) is None)
IN_A_CLOUD: Final = tuple(command for command in EXECUTED if in_a_cloud(command))
ON_A_CLUSTER: Final = tuple(command for command in EXECUTED if on_a_cluster(command))
SERVING_FILES: Final = tuple(command for command in EXECUTED if serves(command) and not on_a_cluster(command))
ON_FILES: Final = tuple(command for command in EXECUTED if command not in {*IN_A_CLOUD, *ON_A_CLUSTER, *SERVING_FILES})
