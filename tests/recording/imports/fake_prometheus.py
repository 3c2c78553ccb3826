"""A Prometheus on loopback with the series of a small cluster; it answers range queries in the form of the real one."""

import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

_QUERY = re.compile(r"(\w+)\{(.*)\}( == 1)?")
_MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')


@dataclass
class Recorded:
    """One series: its labels, and its value from a time on until the next one; None ends it."""

    metric: dict[str, str]
    values: list[tuple[float, float | None]]

    def at(self, time: float) -> float | None:
        return next((value for since, value in reversed(self.values) if since <= time), None)


@dataclass
class FakePrometheus:
    address: str = ""
    series: list[Recorded] = field(default_factory=list)
    bearer: str = ""
    most_samples: float = math.inf
    spoilt: list[tuple[int, bytes]] = field(default_factory=list)
    """Answers to give before any other."""
    asked: list[dict[str, str]] = field(default_factory=list)

    def add(self, name: str, values: list[tuple[float, float | None]], **labels: str) -> None:
        own = {"__name__": name, "instance": "10.0.0.7:8080", "job": "kube-state-metrics", "cluster": "prod"}
        self.series.append(Recorded({**own, **labels}, values))

    def open_metrics(self, start: float, end: float, step: float) -> str:
        """All samples from a time to another, as `promtool tsdb create-blocks-from openmetrics` reads them."""
        lines = []
        for one in sorted(self.series, key=lambda one: one.metric["__name__"]):
            labels = ",".join(f'{name}="{value}"' for name, value in one.metric.items() if name != "__name__")
            for number in range(round((end - start) / step) + 1):
                value = one.at(start + number * step)
                if value is not None:
                    lines.append(f"{one.metric['__name__']}{{{labels}}} {value:.17g} {start + number * step:.3f}")
        return "\n".join([*lines, "# EOF\n"])

    def answer(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        if self.spoilt:
            return self.spoilt.pop(0)
        if self.bearer and authorization != f"Bearer {self.bearer}":
            return 401, b"Unauthorized\n"
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        times = [start + number * step for number in range(round((end - start) / step) + 1)]
        found = [entry for entry in (self._sampled(one, form["query"], times) for one in self.series) if entry]
        if sum(len(entry["values"]) for entry in found) > self.most_samples:
            said = "query processing would load too many samples into memory in query execution"
            return 422, json.dumps({"status": "error", "errorType": "execution", "error": said}).encode()
        return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}).encode()

    @staticmethod
    def _sampled(one: Recorded, query: str, times: list[float]) -> dict[str, Any] | None:
        parsed = _QUERY.fullmatch(query)
        assert parsed is not None, query
        name, matchers, only_ones = parsed.groups()
        if one.metric["__name__"] != name:
            return None
        for label, operator, value in _MATCHER.findall(matchers):
            if not re.fullmatch(value if operator == "=~" else re.escape(value), one.metric.get(label, "")):
                return None
        sampled = [(time, one.at(time)) for time in times]
        values = [
            [time, f"{value:.17g}"] for time, value in sampled if value is not None and (not only_ones or value == 1)
        ]
        return {"metric": one.metric, "values": values} if values else None


@contextmanager
def prometheus() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            fake.asked.append({**form, "path": self.path})
            status, answer = fake.answer(form, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    fake.address = f"http://127.0.0.1:{server.server_port}/prom"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
