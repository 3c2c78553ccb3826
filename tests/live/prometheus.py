"""A Prometheus that reads what a controller serves, and is asked what the dashboards ask."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.live.programs import Program, free_port

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
VARIABLES = {'"$job"': '"karpool"', '"$nodepool"': '".*"', "$__rate_interval": "1m"}


def prometheus_program() -> Path:
    """The one that `scripts/ensure-promtool` has found or fetched."""
    command = [str(ROOT / "scripts" / "ensure-promtool"), "--no-fetch"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode:
        pytest.skip("NOT TESTED: dashboards on a real Prometheus; `scripts/ensure-promtool` gets it")
    return Path(found.stdout.strip()).with_name("prometheus")


class Prometheus:
    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, query: str) -> list[Any]:
        """The series of the answer; a query that Prometheus refuses is an error."""
        return list(self._get("query", query=query)["result"])

    def targets(self) -> dict[str, str]:
        """How each target was found, by its address."""
        return {target["scrapeUrl"]: target["health"] for target in self._get("targets")["activeTargets"]}

    def alerts(self) -> set[str]:
        """The alerts that there are rules for."""
        groups = self._get("rules", type="alert")["groups"]
        return {rule["name"] for group in groups for rule in group["rules"] if rule["health"] != "err"}

    def _get(self, what: str, **asked: str) -> dict[str, Any]:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - on the loopback interface
            body: dict[str, Any] = json.load(answer)
        assert body["status"] == "success", body
        return dict(body["data"])


@contextmanager
def prometheus(folder: Path, target: str, token: str) -> Iterator[Prometheus]:
    """It scrapes a target every second, with the shipped rules."""
    folder.mkdir()
    (folder / "token").write_text(token)
    scraped = {
        "job_name": "karpool",
        "authorization": {"credentials_file": str(folder / "token")},
        "static_configs": [{"targets": [target]}],
    }
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "rule_files": [str(MONITORING / "rules.yaml")], "scrape_configs": [scraped]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    flags = (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    )
    program = Program([prometheus_program(), *flags], folder / "log")
    program.start()
    try:
        program.wait_until_healthy(f"http://{address}/-/ready")
        yield Prometheus(f"http://{address}")
    finally:
        program.stop()


def panels() -> Iterator[tuple[str, str]]:
    """Title and query of whatever the dashboard of the controller asks."""
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            yield panel["title"], query
