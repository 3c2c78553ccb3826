"""What tests of imports share: the command, what is in a recording, and that it can be replayed."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from karpool.cli.main import cli
from karpool.recording.history import History, histories
from karpool.recording.reader import RecordingFile
from karpool.recording.records import AnyRecord

POOLS = """
catalog: kwok
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    disruption: {consolidateAfter: 30s}
policies:
  as-recorded: {decisions: {search: prefix}}
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def imported(kind: str, output: Path, *arguments: str | Path) -> Result:
    result = run("import", *arguments, "--from", kind, "-o", output)
    assert result.exit_code == 0, result.stderr
    assert output.exists()
    return result


def refused(output: Path, *arguments: str | Path, status: int = 2) -> str:
    """What is said of an import that cannot be; nothing of it is left."""
    there = set(output.parent.iterdir())
    result = run("import", *arguments, "-o", output)
    assert result.exit_code == status, result.output
    assert set(output.parent.iterdir()) == there
    (line,) = result.stderr.splitlines()
    return line


def records_of(path: Path) -> list[AnyRecord]:
    return list(RecordingFile(path))


def history_of(path: Path, until: float = float("inf")) -> History:
    """The cluster of a recording, at the end or so many seconds after its start."""
    file = RecordingFile(path)
    history = History(file.header)
    for _ in histories(_Until(file, until), history):
        pass
    return history


class _Until:
    def __init__(self, file: RecordingFile, until: float) -> None:
        self.path, self.header, self._file, self._until = file.path, file.header, file, until

    def __iter__(self) -> Any:
        return (record for record in self._file if getattr(record, "t", 0.0) <= self._until)


def replayed(recording: Path, scenario: str = POOLS) -> dict[str, Any]:
    """The statistics of what was recorded and of the replay, by policy."""
    file = recording.with_suffix(".yaml")
    file.write_text(f"recording: {recording.name}\n{scenario}")
    result = run("simulate", file, "--output", "json")
    assert result.exit_code == 0, result.stderr
    policies: dict[str, Any] = json.loads(result.stdout)["policies"]
    return {name: policy.get("mean", policy) for name, policy in policies.items()}
