"""Jobs on a real Ray of this machine, and what happens when a worker or its driver dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from karpool.wire.problems import InputError
from karpool.workers.on_ray import RayError, _do, ray_workers
from karpool.workers.processes import Progress

# Ray reads it when it is imported: nodes on the loopback are then found there.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 - Ray writes it so
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'karpool[ray]'")
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files to the end of the process.
    pytest.mark.filterwarnings("default"),
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two nodes of one processor each; the address by which drivers find them."""
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 * 2**20}
    two = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        two.add_node(**small)
        os.environ["RAY_ADDRESS"] = two.address
        yield two.address
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        two.shutdown()


def squared(offset: int, number: int, progress: Progress) -> int:
    progress(1)
    if number == 3:
        raise InputError.at("--set", "three is not welcome")
    return number**2 + offset


def deadly_once(folder: str, number: int, _: Progress) -> tuple[int, str]:
    """The first worker that gets a job dies in the middle of it."""
    mark = Path(folder) / str(number)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number, ray.get_runtime_context().get_node_id()


def nothing(_job: int, _done: int) -> None:
    """Nobody listens."""


def test_jobs_are_done_on_both_nodes_and_errors_are_those_of_the_job(cluster: str) -> None:  # noqa: ARG001
    with ray_workers(partial(squared, 1), "ray") as workers:
        assert dict(workers.run([0, 1, 2], nothing)) == {0: 1, 1: 2, 2: 5}
        with pytest.raises(InputError, match="three is not welcome"):
            list(workers.run(range(6), nothing))


def test_a_job_whose_worker_is_killed_is_done_by_another(cluster: str, tmp_path: Path) -> None:  # noqa: ARG001
    with ray_workers(partial(deadly_once, str(tmp_path)), "ray") as workers:
        results = dict(workers.run(range(4), nothing))
    assert {number: result[0] for number, result in results.items()} == {number: number for number in range(4)}
    assert len(list(tmp_path.iterdir())) == 4


def test_nodes_with_another_version_are_refused() -> None:
    with pytest.raises(RayError, match="install the same everywhere"):
        _do("0.0.1", "key", [], 1)


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    with (
        pytest.raises(RayError, match=r"^Ray at ray://127\.0\.0\.1:9"),
        ray_workers(partial(squared, 1), "ray://127.0.0.1:9"),
    ):
        pass


def swept(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from karpool.cli.main import main; main()", "sweep", *arguments, "-o", "json"]
    return subprocess.run(command, capture_output=True, check=False, timeout=280)  # noqa: S603 - ours


def test_a_sweep_whose_worker_and_whose_driver_are_killed_gives_the_bytes_of_a_local_one(
    cluster: str,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    kept = tmp_path / "results.jsonl"
    asked = ("churn", "--set", "consolidateAfter=30s,30m", "--seeds", "3", "--length", "40m", "--run-all")
    command = [sys.executable, "-c", "from karpool.cli.main import main; main()", "sweep", *asked]
    with subprocess.Popen([*command, "--on", "ray", "--results", str(kept)], stdout=subprocess.DEVNULL) as driver:  # noqa: S603 - ours
        wait_for(kept, 1)
        kill_a_worker()
        wait_for(kept, 3)
        driver.kill()
    done = [json.loads(line) for line in kept.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert 3 <= len(done) < 6
    resumed = swept(*asked, "--on", "ray", "--results", str(kept))
    assert resumed.returncode == 0, resumed.stderr
    assert kept.read_bytes().count(b"\n") == 6
    assert resumed.stdout == swept(*asked).stdout


def wait_for(file: Path, lines: int) -> None:
    deadline = time.monotonic() + 200
    while not (file.exists() and file.read_bytes().count(b"\n") >= lines):
        assert time.monotonic() < deadline, "no result has come"
        time.sleep(0.05)


def kill_a_worker() -> None:
    """Kill a process that is in the middle of a trial: Ray names it after its task."""
    titles = {int(entry.name): title_of(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    busy = [pid for pid, title in titles.items() if title.startswith("ray::_do")]
    assert busy, "no trial is running"
    os.kill(busy[0], signal.SIGKILL)


def title_of(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
