"""Writing a node's state: only on what was decided on, and whatever else changes meanwhile."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs
from tests.factories import node as make_node

from karpool.compaction.actions import SetNodeState
from karpool.compaction.marks import Mark
from karpool.compactor.actuator import DryRunActuator
from karpool.model.objects import Objects

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mark", "cordon", "action"),
    [
        (Mark(marked=True, marked_at=NOW), None, "mark"),
        (Mark(updated=NOW), None, "unmark"),
        (Mark(in_progress=True, updated=NOW), None, "carry on"),
        (replace(Mark(in_progress=True, updated=NOW), drained_at=NOW), None, "drained"),
        (Mark(in_progress=True, updated=NOW), True, "cordon"),
        (Mark(updated=NOW, retry_after=NOW), False, "uncordon"),
    ],
)
def test_a_change_of_state_is_called_what_it_is(mark: Mark, cordon: bool | None, action: str) -> None:  # noqa: FBT001
    actuator = DryRunActuator()
    actuator.with_marks(Objects(nodes=(make_node("a"),)))
    with capture_logs() as logs:
        asyncio.run(actuator.execute((SetNodeState("a", mark, cordon),)))
    assert [(line["event"], line["action"]) for line in logs] == [("action skipped in a dry run", action)]
