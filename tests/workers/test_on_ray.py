"""Jobs on a real Ray of this machine, and what happens when a worker or its driver dies."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from karpool.wire.problems import InputError
from karpool.workers.on_ray import RayError, _do, ray_workers
from karpool.workers.processes import Progress

# Ray reads it when it is imported: nodes on the loopback are then found there.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 - Ray writes it so
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Else a token that somebody on this machine has is asked for, and not by everything that Ray starts.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'karpool[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    # Ray leaves sockets and files to the end of the process.
    pytest.mark.filterwarnings("default"),
]

ROOT = Path(__file__).parents[2]


SMALL = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 * 2**20}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes of one processor each."""
    from ray.cluster_utils import Cluster

    two = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    try:
        two.add_node(**SMALL)
        yield two
    finally:
        two.shutdown()


@pytest.fixture
def cluster(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address by which drivers find the two nodes."""
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    return str(nodes.address)


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


def test_a_cluster_that_is_not_there_is_one_line_and_no_warning_of_ray() -> None:
    with (
        warnings.catch_warnings(record=True, action="always") as warned,
        pytest.raises(RayError, match=r"^Ray at ray://127\.0\.0\.1:9"),
        ray_workers(partial(squared, 1), "ray://127.0.0.1:9"),
    ):
        pass
    assert [entry for entry in warned if issubclass(entry.category, UserWarning)] == []


def test_an_address_where_nobody_is_is_one_line_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    began = time.monotonic()
    with (
        pytest.raises(RayError, match=r"^Ray at ray: nothing answers at 127\.0\.0\.1:9$"),
        ray_workers(partial(squared, 1), "ray"),
    ):
        pass
    assert time.monotonic() - began < 25


def mortal(number: int, _: Progress) -> str:
    if number == 1:
        os._exit(9)
    return str(number)


def test_a_job_that_kills_all_its_workers_is_lost_and_keeps_no_others_from_being_done(cluster: str) -> None:  # noqa: ARG001
    with ray_workers(mortal, "ray", lost=lambda _, why: why) as workers:
        found = dict(workers.run(range(3), nothing))
    assert (found[0], found[2]) == ("0", "2")
    assert found[1].startswith("it was lost 4 times, the last time so: The worker died unexpectedly")
    with pytest.raises(RayError, match="The worker died unexpectedly"), ray_workers(mortal, "ray") as workers:
        list(workers.run(range(3), nothing))


def gone(folder: str, name: str, _: Progress) -> str:
    """Ends three times as if Ray had lost something, and the fourth time well."""
    tries = len(list(Path(folder).glob(f"{name}-*")))
    (Path(folder) / f"{name}-{tries}").touch()
    if tries < 3:
        raise getattr(ray.exceptions, name)(*{"ObjectLostError": ("00" * 28, "", ""), "NodeDiedError": ("",)}[name])
    return name


def test_whatever_is_lost_on_the_way_of_a_job_has_it_done_again(cluster: str, tmp_path: Path) -> None:  # noqa: ARG001
    names = ("ObjectLostError", "NodeDiedError")
    with ray_workers(partial(gone, str(tmp_path)), "ray") as workers:
        assert dict(workers.run(names, nothing)) == {name: name for name in names}
    assert len(list(tmp_path.iterdir())) == 8


def waiting(folder: str, number: int, _: Progress) -> int:
    """Waits until a node is killed, and for ever if it is on that node."""
    node = ray.get_runtime_context().get_node_id()
    (Path(folder) / f"{number}-{node}").touch()
    while (Path(folder) / "doomed").read_text() == node or not (Path(folder) / "killed").exists():
        time.sleep(0.05)
    return number * 10


def test_jobs_of_a_node_that_is_killed_are_done_by_others(nodes: Any, cluster: str, tmp_path: Path) -> None:  # noqa: ARG001
    def kill() -> None:
        wait_for_one(tmp_path, f"*-{doomed.node_id}")
        nodes.remove_node(doomed, allow_graceful=False)
        (tmp_path / "killed").touch()

    with ray_workers(partial(waiting, str(tmp_path)), "ray") as workers:
        doomed = nodes.add_node(**SMALL)  # not the one by which we are connected
        (tmp_path / "doomed").write_text(doomed.node_id)
        killer = Thread(target=kill)
        killer.start()
        assert dict(workers.run(range(4), nothing)) == {number: number * 10 for number in range(4)}
        killer.join()
    assert len(list(tmp_path.glob("*-*"))) == 5


def wait_for_one(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 200
    while not list(folder.glob(pattern)):
        assert time.monotonic() < deadline, "no job runs there"
        time.sleep(0.05)


@contextmanager
def client_server() -> Iterator[str]:
    """A Ray as `ray start` starts it, and the address for clients."""
    client, own = free_port(), free_port()
    ports = ("--port", str(own), "--ray-client-server-port", str(client))
    any_port = ("--min-worker-port", "0", "--max-worker-port", "0")
    size = ("--num-cpus", "2", "--object-store-memory", "100000000")
    here = ("--head", "--block", "--include-dashboard", "false", "--node-ip-address", "127.0.0.1")
    program = str(Path(sys.executable).with_name("ray"))
    # Its workers import what a job is made of, also if that is of these tests.
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    command = [program, "start", *here, *ports, *any_port, *size]
    with subprocess.Popen(command, env=known, stdout=subprocess.DEVNULL) as head:  # noqa: S603 - ours
        try:
            deadline = time.monotonic() + 200
            while not answers(client):
                assert head.poll() is None, "Ray has ended"
                assert time.monotonic() < deadline, "Ray does not start"
                time.sleep(0.2)
            yield f"ray://127.0.0.1:{client}"
        finally:
            head.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_client_of_a_cluster_gets_results_errors_and_the_bytes_of_a_local_sweep(tmp_path: Path) -> None:
    asked = ("churn", "--set", "consolidateAfter=30s,30m", "--seeds", "1", "--length", "10m")
    with client_server() as address:
        with ray_workers(partial(deadly_once, str(tmp_path)), address) as workers:
            assert sorted(number for number, _ in dict(workers.run(range(2), nothing)).values()) == [0, 1]
        with (
            ray_workers(partial(squared, 1), address) as workers,
            pytest.raises(InputError, match="three is not welcome"),
        ):
            list(workers.run(range(6), nothing))
        far = swept(*asked, "--on", address)
    assert far.returncode == 0, far.stderr
    assert far.stdout == swept(*asked).stdout


def test_a_fleet_on_ray_gives_the_bytes_of_a_local_one(cluster: str, tmp_path: Path) -> None:  # noqa: ARG001
    for name in ("asia", "eu"):
        shutil.copytree(ROOT / "examples", tmp_path / name, ignore=shutil.ignore_patterns("README.md"))
    (tmp_path / "broken.json").write_text("nonsense")
    asked = ("plan", "--fleet", str(tmp_path), "--at", "2026-11-15T22:00:00Z")
    local, far = karpool(*asked), karpool(*asked, "--on", "ray")
    assert (local.returncode, far.returncode) == (0, 0), far.stderr
    assert json.loads(far.stdout)["planned"] == 2
    assert far.stdout == local.stdout


def swept(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return karpool("sweep", *arguments)


def karpool(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from karpool.cli.main import main; main()", *arguments, "-o", "json"]
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
