"""The shown commands that no test executes as they are, each with the reason; patterns of the whole line."""

import re
from typing import Final

NOT_EXECUTED: Final = {
    r"karpool catalog update --cloud (?:aws|gcp).*": "needs an account; tests/catalog plays the clouds",
    r"docker (?:build|push) .*": "needs a container engine, which a test machine need not have",
    r"(?:echo '[^']*' \| )?uv pip compile .*": "asks the package index",
    r"pip install .*": "asks the package index; the test environment has what it would install",
    r"source \.venv/bin/activate": "changes the reader's shell",
    r"source <\(karpool completion bash\)": "changes the reader's shell; tests/cli/test_shell.py does",
    r"git show .*": "needs the reader's repository; the tests have the file that it makes",
    r"(?:KARPOOL_EVERY_KILL=1 )?\.venv/bin/pytest .*": "is this test suite",
    r"\.venv/bin/python scripts/conformance .*": "takes minutes to hours; tests/conformance executes quick specs",
    r"\.venv/bin/python scripts/robustness .*": "takes minutes; `make test` executes it with other numbers",
    r"scripts/ensure-kubernetes": "builds for ten minutes; `make test` begins with it",
    r"promtool test rules .*": "tests/monitoring executes it",
    r"kubectl .*port-forward .*": "needs a kubelet; the tests' nodes have none",
    r"kubectl logs .*": "needs a kubelet; the tests' nodes have none",
    r"kubectl -n monitoring apply -f deploy/monitoring/prometheusrule\.yaml": (
        "needs the Prometheus operator; promtool checks the same rules"
    ),
}


def reason(text: str) -> str | None:
    """Why a command is not executed, None if it is."""
    return next((why for pattern, why in NOT_EXECUTED.items() if re.fullmatch(pattern, text)), None)
