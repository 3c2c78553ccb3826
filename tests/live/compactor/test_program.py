"""`karpool compact` as a program: the original's variables, its metrics, and its end."""

import asyncio
import os
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import SIGTERM

from prometheus_client.parser import text_string_to_metric_families
from tests.live.compactor.trial import ENABLED, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.programs import free_port

PREFIX = "estafette_node_compactor_"
VARIABLES = {
    "NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS": "3600",
    "MINIMUM_NODE_AGE_SECONDS": "0",
    "SLEEP_DURATION_BETWEEN_ITERATIONS_SECONDS": "1",
    "NAMESPACE": "default",
}
Series = dict[tuple[str, str, str], float]


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of a page; status 0 while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def series(page: str) -> Series:
    """The values of the original's gauges, by name without the prefix, pool and node."""
    return {
        (sample.name.removeprefix(PREFIX), sample.labels["nodepool"], sample.labels.get("node", "")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    }


@asynccontextmanager
async def program(trial: CompactorTrial, port: int, *more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The compactor in a process of its own, told with the variables of its manifest."""
    variables = VARIABLES | {"KUBECONFIG": str(trial.plane.kubeconfig()), "CONFIGMAP_NAME": trial.config_map}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from karpool.cli.main import main; main()", "compact"),
        *("--metrics-address", f"127.0.0.1:{port}", *more),
        env={**os.environ, **variables},
        stdin=DEVNULL,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def test_variables_metrics_and_the_end_are_those_of_the_original(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        port = free_port()
        await trial.make(node("one", "small"), node("two", "small", cpu="1500m"), node("three", "large"))
        await trial.configure(small=ENABLED)
        async with program(trial, port) as process:
            await trial.expect_marked("one")

            async def measured() -> bool:
                _, page = await asyncio.to_thread(get, port, "/metrics")
                return ("utilized_cpu_ratio", "small", "two") in series(page)

            await trial.until("there are metrics", measured)
            _, page = await asyncio.to_thread(get, port, "/metrics")
            samples = series(page)
            assert {(name, pool): value for (name, pool, of), value in samples.items() if not of} == {
                ("total_node_count", "small"): 2,
                ("underutilized_node_count", "small"): 2,
                ("marked_for_removal_node_count", "small"): 2,
                ("scale_down_in_progress_node_count", "small"): 0,
                ("total_node_count", "large"): 1,
                ("underutilized_node_count", "large"): 0,
                ("marked_for_removal_node_count", "large"): 0,
                ("scale_down_in_progress_node_count", "large"): 0,
            }
            assert {name: value for (name, _, of), value in samples.items() if of == "two"} == {
                "allocatable_cpu": 1500,
                "allocatable_memory": 16384,
                "total_cpu_requests": 0,
                "total_memory_requests": 0,
                "utilized_cpu_ratio": 0,
                "utilized_memory_ratio": 0,
            }
            assert {of for _, _, of in samples} == {"", "one", "two", "three"}
            assert (await asyncio.to_thread(get, port, "/healthz"))[0] == 200
            assert (await asyncio.to_thread(get, port, "/readyz"))[0] == 200
            assert not (await trial.mark("one")).in_progress
            process.send_signal(SIGTERM)
            _, log = await asyncio.wait_for(process.communicate(), 10)
            assert (process.returncode, b"stopping" in log) == (0, True)

    play(control_plane, scenario)


def test_a_compactor_without_a_configuration_is_alive_but_not_ready(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        port = free_port()
        async with program(trial, port, "--log-format", "text"):

            async def waits() -> bool:
                status, text = await asyncio.to_thread(get, port, "/readyz")
                return status == 503 and f"ConfigMap default/{trial.config_map}: does not exist" in text

            await trial.until("it says what it waits for", waits)
            assert (await asyncio.to_thread(get, port, "/metrics"))[0] == 200
            assert (await asyncio.to_thread(get, port, "/healthz")) == (200, "ok\n")

    play(control_plane, scenario)
