"""What shells and kubectl get: the plugin, names that are nearly right, and the version."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.factories import pod
from tests.tables import row, table

from karpool import __version__
from karpool.cli.errors import unknown_node
from karpool.cli.main import COMMANDS, cli

BIN = Path(sys.executable).parent


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_completing_a_command_imports_none() -> None:
    """While somebody types, nothing may take long: no command is loaded for its name."""
    program = (
        "import sys\nfrom click.shell_completion import ShellComplete\nfrom karpool.cli.main import cli\n"
        "found = ShellComplete(cli, {}, 'karpool', '').get_completions([], '')\n"
        "print(len(found), sorted(name for name in sys.modules if name in ('numpy', 'numba', 'karpool.cli.plan')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == f"{len(COMMANDS)} []\n"


def kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("NOT TESTED: the plugin of kubectl; there is no kubectl")
    known = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    command = [program, *arguments]
    return subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603


def test_kubectl_runs_karpool_as_a_plugin() -> None:
    done = kubectl("karpool", "version")
    assert (done.returncode, done.stdout) == (0, f"karpool {__version__}\n")
    wrong = kubectl("karpool", "plan", "--no-such")
    assert wrong.returncode == 2
    assert "(see kubectl karpool plan --help)" in wrong.stderr


def test_kubectl_completes_the_plugin() -> None:
    """kubectl asks a program of the plugin for completions, and reads them as it reads its own."""
    found = kubectl("__complete", "karpool", "bud").stdout.splitlines()
    assert found[0] == f"budgets\t{COMMANDS['budgets']}"
    assert found[-1] == ":4"


@pytest.mark.parametrize("arguments", [("--version",), ("version",)])
def test_the_version_is_the_same_everywhere(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).stdout == f"karpool {__version__}\n"


def test_karpool_alone_prints_its_help() -> None:
    result = run()
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)


@table(
    row("a command", arguments=["plna"], said="there is no command 'plna'; did you mean plan?"),
    row("an option", arguments=["plan", "--contxt", "x"], said="Did you mean"),
    row("a grouping", arguments=["plan", "--by", "namspace"], said="did you mean namespace?"),
    row("a format", arguments=["plan", "-o", "jsn"], said="did you mean json?"),
    row("a scenario", arguments=["simulate", "chrun"], said="did you mean churn?"),
    row("a policy", arguments=["simulate", "churn", "--policy", "after30s"], said="did you mean after-30s?"),
    row("a feature gate", arguments=["plan", "--feature-gates", "NodeRepiar=true"], said="did you mean NodeRepair?"),
    row("a key", arguments=["catalog", "arhc=arm64"], said="did you mean arch?"),
    row("a type as a key", arguments=["catalog", "m6i.lrage"], said="did you mean type=m6i.large?"),
    row("a price", arguments=["catalog", "--price", "m6i.lrage=1"], said="did you mean m6i.large?"),
    row("a shell", arguments=["completion", "bsh"], said="did you mean bash?"),
)
def test_what_is_nearly_right_is_told(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@table(
    row("a type", asked="type=m6i.lrage", said="the catalogue has no type m6i.lrage; did you mean m6i.large?"),
    row("an architecture", asked="arch=arm", said="no type of the catalogue has arch=arm; did you mean arm64?"),
    row("nothing like it", asked="arch=sparc", said="no type of the catalogue has arch=sparc; there are amd64, arm64"),
    row(
        "a label",
        asked="karpenter.k8s.aws/instance-famly=m6i",
        said="no type of the catalogue has karpenter.k8s.aws/instance-famly; did you mean karpenter.k8s.aws/instance-"
        "family?",
    ),
)
def test_what_no_type_has_is_told_beside_the_empty_list(asked: str, said: str) -> None:
    result = run("catalog", asked, "--catalog", "sample")
    assert (result.exit_code, result.stderr) == (0, f"karpool: {said}\n")


@table(
    row("a slip", asked="ip-10-0-0-22", said="did you mean ip-10-0-0-2.ec2.internal?"),
    row("a part of the name", asked="10-0-0-3", said="did you mean ip-10-0-0-3.ec2.internal?"),
    row("a pod", asked="wbe-1", said="pod web-1 runs on node ip-10-0-0-2.ec2.internal"),
)
def test_a_node_that_is_not_there_is_told_by_what_it_resembles(asked: str, said: str) -> None:
    names = [f"ip-10-0-0-{number}.ec2.internal" for number in (1, 2, 3)]
    error = unknown_node("NODE", asked, names, [pod("web-1", node=names[1]), pod("waits")])
    assert str(error) == f"NODE: there is no node {asked!r} among the 3 that were read; {said}"
