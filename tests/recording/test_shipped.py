"""The recording that comes with Karpool can be read, is small, and is nobody's."""

from importlib import resources
from pathlib import Path

from karpool.recording import records as r
from karpool.recording.frames import Frames
from karpool.recording.history import History, histories
from karpool.recording.parts import open_recording

PATH = Path(str(resources.files("karpool.virtual") / "scenarios" / "workday.recording"))


def test_it_is_small_whole_and_of_a_simulated_cluster() -> None:
    assert PATH.stat().st_size < 1_000_000
    file = open_recording(PATH)
    assert file.header.source == "simulation"
    history = History(file.header)
    records = list(histories(file, history))
    assert file.torn == 0
    assert len(list(Frames(PATH))) > 5  # damage of one costs no more than two hours
    assert history.time == 12 * 3600
    assert {pod.metadata.namespace for pod in history.templates.values()} == {"default"}
    causes = {record.cause for record in records if isinstance(record, r.Leaving)}
    assert {r.LeaveCause.EVICTED, r.LeaveCause.DELETED} <= causes
