"""The trace openb: a small one of the same form, made by hand."""

import lzma
from pathlib import Path

import pytest
from tests.recording.imports.replays import history_of, imported, records_of, refused, replayed, run
from tests.tables import row, table

from karpool.recording import records as r

NODES = """sn,cpu_milli,memory_mib,gpu,model
n-0,32000,131072,0,
n-1,64000,262144,2,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,500,,LS,Running,0,7200,0
p-1,4000,4096,0,0,,BE,Succeeded,600,2400,660
p-2,4000,4096,0,0,,BE,Failed,700,800,710
p-3,4000,4096,8,1000,,BE,Pending,900,1000,
p-4,2000,2048,2,1000,,LS,Running,1200,5000,1300
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(PODS)
    return folder


def test_pods_come_run_and_go_as_the_trace_says(trace: Path, tmp_path: Path) -> None:
    result = imported("openb", tmp_path / "openb.recording", trace)
    assert "prices" in result.stderr
    found = records_of(tmp_path / "openb.recording")
    assert [record.created for record in found if isinstance(record, r.Born)] == [0, 600, 700, 900, 1200]
    ends = [(record.t, record.how) for record in found if isinstance(record, r.Died)]
    assert ends == [
        (800, r.End.FAILED),
        (1000, r.End.GONE),
        (2400, r.End.SUCCEEDED),
        (5000, r.End.GONE),
        (7200, r.End.GONE),
    ]
    bound = {record.pod: record.node for record in found if isinstance(record, r.Bound)}
    assert bound[0] == "n-1"
    assert 3 not in bound
    assert 4 not in bound  # the GPUs of the only node that has some are taken in part
    history = history_of(tmp_path / "openb.recording", 2000)
    assert set(history.missing) == {"NodePool", "NodeClaim", "Eviction"}
    assert history.prices["c32-m128/openb-a/on-demand"] == pytest.approx(1.6192)


def test_all_pods_may_be_there_at_once(trace: Path, tmp_path: Path) -> None:
    imported("openb", tmp_path / "openb.recording", trace, "--at-once")
    history = history_of(tmp_path / "openb.recording")
    assert len(history.pods) == 5
    assert history.time == 86400


def test_a_trace_is_replayed(trace: Path, tmp_path: Path) -> None:
    imported("openb", tmp_path / "openb.recording", trace)
    runs = replayed(tmp_path / "openb.recording", "policies: {as-recorded: {}}")
    recorded, again = runs["recorded"], runs["as-recorded"]
    assert recorded["nodesAtEnd"] == again["nodesAtEnd"] == 2
    assert again["nodeHours"] == pytest.approx(recorded["nodeHours"])
    assert again["cpuUtilization"] == pytest.approx(recorded["cpuUtilization"], abs=0.01)
    assert recorded["cost"] > 0


@table(
    row("no number", file="pods.csv", text=PODS.replace("16384", "much"), said="line 2: memory_mib is 'much'"),
    row("a huge number", file="nodes.csv", text=NODES.replace("32000", "9" * 5000), said="line 2: cpu_milli is '999"),
    row("another table", file="nodes.csv", text="a,b\n1,2\n", said="has no column sn"),
    row("a short line", file="pods.csv", text=PODS + "p-9,1\n", said="line 7 is cut short"),
    row("no text", file="pods.csv", text="\udcff\udcfe", said="is no table"),
    row("nothing", file="pods.csv", text=PODS.splitlines()[0], said="without nodes or without pods"),
)
def test_a_table_that_is_none_is_refused(trace: Path, tmp_path: Path, file: str, text: str, said: str) -> None:
    (trace / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert said in refused(tmp_path / "openb.recording", trace, "--from", "openb")


def test_a_recording_that_is_there_stays(trace: Path, tmp_path: Path) -> None:
    there = tmp_path / "openb.recording"
    there.write_bytes(lzma.compress(b"mine"))
    assert "is there already" in refused(there, trace, "--from", "openb")
    assert there.read_bytes() == lzma.compress(b"mine")


def test_options_of_another_source_are_refused(trace: Path, tmp_path: Path) -> None:
    result = run("import", trace, "--from", "openb", "-o", tmp_path / "a.recording", "--step", "30s")
    assert (result.exit_code, result.stderr.strip()) == (
        2,
        "karpool: --step: goes with --from prometheus, and this is --from openb",
    )
