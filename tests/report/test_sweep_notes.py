"""What a reader of a sweep is told about its numbers."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from tests.sweep.worlds import NOWHERE, Workers

from karpool.model.objects import Objects
from karpool.report.simulations.sweep_document import SweepDocument, sweep_document, to_json
from karpool.report.simulations.sweep_table import notes
from karpool.sweep.dimensions import read_dimension
from karpool.sweep.driver import Sweep
from karpool.sweep.methods import Grid
from karpool.sweep.trial import SweepInput
from karpool.virtual.replays.demand import Demand

START = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
def document_of() -> Callable[[SweepInput], SweepDocument]:
    def document(entry: SweepInput) -> SweepDocument:
        sweep = Sweep([entry], [1], report=lambda *_: None)
        sweep.run(Grid([read_dimension("consolidateAfter=30s,5m")]), Workers())
        return sweep_document(sweep, "grid", complete=True)

    return document


def recorded(*gaps: tuple[float, float]) -> SweepInput:
    demand = Demand(START, 86400.0, Objects(), {}, (), (), gaps)
    return SweepInput("week.recording", NOWHERE.inputs._replace(demand=demand), "default")


def test_gaps_of_a_recording_are_told(document_of: Callable[[SweepInput], SweepDocument]) -> None:
    document = document_of(recorded((60.0, 1260.0), (86000.0, 90000.0), (99999.0, 100000.0)))
    written = msgspec.json.decode(to_json(document))
    assert written["inputs"][0]["gapSeconds"] == 1200 + 400
    [line] = [line for line in notes(document, 2) if "recorded" in line]
    assert line.startswith("Nothing was recorded during 26m 40s of week.recording: demand stayed as it was.")
    assert line.endswith("karpool simulate week.recording")


def test_where_there_are_none_nothing_is_told(document_of: Callable[[SweepInput], SweepDocument]) -> None:
    for entry, seconds in ((recorded(), 0), (NOWHERE, None)):
        document = document_of(entry)
        assert document.inputs[0].gap_seconds == seconds
        assert not [line for line in notes(document, 2) if "recorded" in line]
