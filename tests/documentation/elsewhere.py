"""The shown commands that no test executes, each with the reason; patterns of the whole line."""

import re
from collections.abc import Mapping
from typing import Final

ONLY_LOOKED_AT: Final = {
    r"make .*": "is what starts the tests, or takes long; its targets are looked at",
    r"(?:PYTHONPATH=\. )?python benchmarks/.*": "measures for minutes; its options are looked at",
    r"\.venv/bin/python scripts/conformance .*": "takes minutes to hours; its options are looked at",
}
NOT_EXECUTED: Final = {
    r"docker (?:build|push|buildx) .*": "needs a container engine; tests/live/test_image.py carries out the steps",
    r"scripts/image .*": "needs a container engine; tests/test_image.py gives it one that says what it was told",
    r"(?:echo (?:'[^']*'|\w+) \| )?uv pip compile .*": "asks the package index",
    r"uv python install": "asks the network for an interpreter",
    r"pip install .*": "asks the package index; that there are such extras is looked at",
    r"uvx karpool|pipx install karpool": "nothing is published yet; tests/packaging/test_installers.py has the wheel",
    r"uvx --from dist/.*": "tests/packaging/test_installers.py does it with a wheel of these sources",
    r"pipx install dist/.*": "tests/packaging/test_installers.py does it with a wheel of these sources",
    r"python3 -m venv ~/karpool && .*": "tests/live/test_newcomer.py does it on a bare Debian",
    r"scripts/ensure-bare-root": "makes a whole Debian; `make test-long` begins with it",
    r"karpool plan --fleet .* --on ray://.*": "needs a Ray cluster; tests/workers has one",
    r"karpool simulate churn --seeds 20": "takes minutes; with fewer seeds, and other scenarios, it is executed",
    r"karpool sweep cluster\.json\.zst .*": "takes minutes; tests/cli/test_sweep.py sweeps a snapshot for less long",
    r"karpool sweep churn .* --seeds 10": "takes minutes; tests/cli/test_sweep.py has shorter ones",
    r"karpool sweep churn .* --count 40 .*": "takes minutes; tests/cli/test_sweep.py has shorter ones",
    r"karpool import .*": "needs logs and servers; tests/recording/imports has them",
    r"(?:KARPOOL_EVERY_KILL=1 )?\.venv/bin/pytest .*": "is this test suite",
    r"kubectl .*port-forward .*": "needs a kubelet, and the tests' nodes have none",
    r"kubectl logs .*": "needs a kubelet, and the tests' nodes have none",
}


def reason(text: str, among: Mapping[str, str] = {**ONLY_LOOKED_AT, **NOT_EXECUTED}) -> str | None:
    """Why a command is not executed, None if it is."""
    return next((why for pattern, why in among.items() if re.fullmatch(pattern, text)), None)
