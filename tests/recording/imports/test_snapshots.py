"""A series of snapshots of a virtual cluster, and what can be known from it."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.recording.imports.replays import history_of, imported, refused, replayed
from tests.tables import row, table
from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.live.snapshot_file import encode_snapshot
from karpool.recording.imports.snapshots import taken, time_of

STORY = """
workloads:
- {name: web, cpu: 900m, memory: 1Gi,
   replicas: {steps: [{after: 0s, value: 4}, {after: 30m, value: 16}, {after: 80m, value: 4}]}}
- {name: agent, kind: DaemonSet, cpu: 50m}
"""


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours, a snapshot each ten minutes."""
    folder = tmp_path_factory.mktemp("snapshots")
    cluster = virtual_cluster(STORY)
    for number in range(1, 13):
        cluster.run(number * 600)
        name = f"cluster-{cluster.now:%Y%m%dT%H%M%SZ}.json"
        (folder / name).write_bytes(encode_snapshot(cluster.store.objects()))
    return folder


def test_a_series_is_a_history(series: Path, tmp_path: Path) -> None:
    path = tmp_path / "week.recording"
    result = imported("snapshots", path, series)
    assert "do not say which pods were evicted" in result.stderr
    history = history_of(path)
    assert history.time == 11 * 600
    assert sum(history.pod_object(number).spec.containers != () for number in history.pods) == len(history.pods)
    assert len(history_of(path, 1200).kinds["Node"]) < len(history_of(path, 3600).kinds["Node"])


def test_a_series_is_replayed(series: Path, tmp_path: Path) -> None:
    imported("snapshots", tmp_path / "week.recording", series)
    runs = replayed(
        tmp_path / "week.recording", "catalog: kwok\npolicies: {as-recorded: {decisions: {search: prefix}}}"
    )
    assert runs["recorded"]["seconds"] == runs["as-recorded"]["seconds"] == 11 * HOUR / 6
    assert runs["as-recorded"]["podsAtEnd"] == runs["recorded"]["podsAtEnd"] == 4
    assert runs["as-recorded"]["cost"] == pytest.approx(runs["recorded"]["cost"], rel=0.2)


def test_a_snapshot_of_several_files_is_a_folder_with_a_time_in_its_name(series: Path, tmp_path: Path) -> None:
    for file in sorted(series.iterdir())[:2]:
        folder = tmp_path / "split" / file.stem
        folder.mkdir(parents=True)
        items = json.loads(file.read_bytes())["items"]
        for kind in {entry["kind"] for entry in items}:
            own = [entry for entry in items if entry["kind"] == kind]
            (folder / f"{kind}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": own}))
    split = tmp_path / "split"
    assert [Path(entry.name).parent for entry in taken([str(split)])] == [split, split]
    assert taken([str(folder) for folder in split.iterdir()]) == taken([str(split)])
    imported("snapshots", tmp_path / "split.recording", split)
    imported("snapshots", tmp_path / "whole.recording", *sorted(series.iterdir())[:2])
    kinds = [history_of(tmp_path / f"{name}.recording", 600).kinds for name in ("split", "whole")]
    assert kinds[0].keys() == kinds[1].keys()
    assert all(kinds[0][kind].keys() == kinds[1][kind].keys() for kind in kinds[1])


@table(
    row(name="cluster-20261116T080000Z.json.zst", at=datetime(2026, 11, 16, 8, tzinfo=UTC)),
    row(name="2026-11-16_08-30.json", at=datetime(2026, 11, 16, 8, 30, tzinfo=UTC)),
    row(name="prod.2026-11-16.json", at=datetime(2026, 11, 16, tzinfo=UTC)),
    row(name="prod-12345678901234.json", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    row(name="prod-20261399.json", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
)
def test_the_time_of_a_snapshot_is_in_its_name_or_that_of_its_file(tmp_path: Path, name: str, at: datetime) -> None:
    file = tmp_path / name
    file.write_text("")
    written = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    os.utime(file, (written, written))
    assert time_of(str(file)) == at


def test_what_is_no_series_is_refused(series: Path, tmp_path: Path) -> None:
    one, *_ = sorted(series.iterdir())
    output = tmp_path / "a.recording"
    assert "needs at least two" in refused(output, one, "--from", "snapshots")
    assert "No such file" in refused(output, tmp_path / "none.json", one, "--from", "snapshots")
    twin = tmp_path / one.name
    twin.write_bytes(one.read_bytes())
    told = refused(output, one, twin, "--from", "snapshots")
    assert "is of the same time as" in told
    assert "the files of one snapshot into a folder with such a name" in told
    spoilt = tmp_path / "later-20270101T000000Z.json"
    spoilt.write_text('{"kind": "List", "items": [{"kind": "Pod"')
    assert "later-20270101T000000Z.json" in refused(output, one, spoilt, "--from", "snapshots")
