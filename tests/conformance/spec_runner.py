"""Runs specs on a cluster that is kept from one to the next, as long as they pass and nothing is measured."""

import contextlib
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.conformance.cluster import Cluster
from tests.conformance.deployment import Start
from tests.conformance.suites import Outcome, Result, Spec, run_spec

MEASURED = "performance"


class SpecRunner:
    """One worker with a cluster of its own; `stop` ends what it runs."""

    def __init__(
        self,
        kubernetes: Path,
        programs: Path,
        start: Start,
        stop: threading.Event,
        *,
        limit: Callable[[Spec], float],
        environment: Mapping[str, str],
        logs: Path,
    ) -> None:
        self._kubernetes = kubernetes
        self._programs = programs
        self._start = start
        self._stop = stop
        self._limit = limit
        self._environment = environment
        self._logs = logs
        self._stack = contextlib.ExitStack()
        self._cluster: Cluster | None = None

    def run(self, spec: Spec) -> Result:
        """The result of a spec; a cluster that does not come up is one, too."""
        # What was measured before would count: memory is seldom given back.
        if spec.suite == MEASURED or (self._cluster is not None and self._cluster.dra != (spec.suite == "dra")):
            self.close()
        try:
            cluster = self._cluster = self._cluster or self._new_cluster(dra=spec.suite == "dra")
        except Exception as error:  # noqa: BLE001 - whatever it was, other specs shall run
            self.close()
            return Result(spec, Outcome.FAILED, 0.0, f"the control plane did not come up: {error}")
        result = self._run(spec, cluster)
        if result.outcome is Outcome.FAILED:
            self.close()
        return result

    def close(self) -> None:
        self._stack.close()
        self._cluster = None

    def _new_cluster(self, *, dra: bool) -> Cluster:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="karpool-conformance-")))
        cluster = Cluster(self._kubernetes, self._programs, folder, self._start, dra=dra)
        return self._stack.enter_context(cluster)

    def _run(self, spec: Spec, cluster: Cluster) -> Result:
        log = cluster.folder / "suite.log"
        result = run_spec(
            spec,
            self._programs,
            {**cluster.environment, **self._environment},
            self._limit(spec),
            log,
            hopeless=lambda: bool(cluster.deployment.problem) or self._stop.is_set(),
        )
        if problem := cluster.deployment.problem:
            result = Result(spec, Outcome.FAILED, result.seconds, f"{problem}; {result.reason}")
        if result.outcome is Outcome.FAILED:
            self._keep_logs(
                spec, [*cluster.folder.glob("*.log"), *cluster.folder.glob("*.journal"), *cluster.plane_logs()]
            )
        return result

    def _keep_logs(self, spec: Spec, logs: Iterable[Path]) -> None:
        """Of every try apart: what is done well the second time says little about the first."""
        folder = self._logs / re.sub(r"[^A-Za-z0-9]+", "-", spec.name)[:120] / time.strftime("%Y%m%dT%H%M%S")
        folder.mkdir(parents=True)
        for log in logs:
            (folder / log.name).write_bytes(log.read_bytes())
