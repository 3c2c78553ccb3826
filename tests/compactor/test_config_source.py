"""The compactor's configuration: looked for, read again when it changes, and never replaced by one that is broken."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.live.compactor.trial import ENABLED

from karpool.compactor.config_source import Configuration, config_namespace, in_file
from karpool.kube.credentials import FixedCredentials
from karpool.kube.kubeconfig import IN_CLUSTER
from karpool.kube.target import Target

BROKEN = '{"nodePools": {"small": {"enabled": "yes"}}}'
"""Nodes are marked, but not cordoned within a test."""


def written(**pools: Any) -> str:
    return json.dumps({"nodePools": pools})


def test_a_file_may_go_come_back_and_be_broken_and_each_is_said_once(tmp_path: Path) -> None:
    file, problems = tmp_path / "config.json", []
    config = Configuration(str(file), in_file(file), problems.append)
    good, other = written(small=ENABLED), written(large=ENABLED)
    with capture_logs() as logs:
        assert not config.refresh()
        for text, changed in [(good, True), (good, False), (BROKEN, False), (BROKEN, False), (good, False)]:
            file.write_text(text)
            assert config.refresh() is changed
        file.unlink()
        assert [config.refresh(), config.refresh()] == [False, False]
        file.write_text(good)
        assert not config.refresh()
        file.write_text(other)
        assert config.refresh()
    assert [problem and problem.removeprefix(f"{file}: ").partition(" ")[0] for problem in problems] == [
        "cannot",
        None,
        "nodePools.small.enabled:",
        None,
        "cannot",
        None,
    ]
    consequences = [line["so"] for line in logs if line["log_level"] == "error"]
    assert consequences == ["nothing is done without one", *["the last good one is kept"] * 2]
    assert config.current is not None
    assert list(config.current.node_pools) == ["large"]


@pytest.mark.parametrize(
    ("context", "given", "expected"),
    [
        (IN_CLUSTER, None, "own"),
        (IN_CLUSTER, "other", "other"),
        ("mine", None, "estafette"),
        ("mine", "other", "other"),
    ],
)
def test_the_config_map_is_looked_for_beside_the_pod_unless_told_otherwise(
    context: str, given: str | None, expected: str
) -> None:
    target = Target(server="https://x", credentials=FixedCredentials(), namespace="own", context=context)
    assert config_namespace(target, given) == expected
