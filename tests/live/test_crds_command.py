"""`karpool crds` on a real API server: it does not overwrite definitions of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.live.control_plane import ControlPlane
from tests.live.https import Client, eventually

from karpool.cli.main import cli
from karpool.live.crds import MANAGED_BY, NAMES, SHARED, definition, definitions

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOREIGN = "nodeclaims.karpenter.sh"


def run(kubeconfig: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["crds", "--kubeconfig", str(kubeconfig), *arguments])


def label(client: Client, name: str, value: str) -> None:
    """Says of an installed definition who manages it."""
    installed: dict[str, Any] = client.get(f"{DEFINITIONS}/{name}").body
    installed["metadata"]["labels"] = {MANAGED_BY: value}
    assert client.request("PUT", f"{DEFINITIONS}/{name}", installed).status == 200


@pytest.fixture
def admin(control_plane: ControlPlane) -> Client:
    client = Client(control_plane.kubeconfig())
    for name in NAMES:
        assert client.post(DEFINITIONS, yaml.safe_load(definition(name))).status in (201, 409)
    for name in NAMES:
        eventually(lambda name=name: "status" in client.get(f"{DEFINITIONS}/{name}").body)
    return client


@pytest.fixture
def _foreign(admin: Client) -> Iterator[None]:
    """Somebody else installed one of the definitions."""
    label(admin, FOREIGN, "Helm")
    yield
    label(admin, FOREIGN, "karpool")


@pytest.mark.usefixtures("admin")
def test_our_own_definitions_are_printed_again(control_plane: ControlPlane) -> None:
    result = run(control_plane.kubeconfig())
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", definitions())


@pytest.mark.usefixtures("_foreign")
def test_somebody_elses_definition_is_not_overwritten(control_plane: ControlPlane) -> None:
    result = run(control_plane.kubeconfig())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    for part in (FOREIGN, "context tests", "--provider karpenter", "karpool.sh/consolidation-grace-period"):
        assert part in result.stderr


@pytest.mark.usefixtures("_foreign")
def test_offline_prints_all_the_same(control_plane: ControlPlane) -> None:
    assert run(control_plane.kubeconfig(), "--offline").stdout == definitions()


@pytest.mark.usefixtures("_foreign")
def test_somebody_who_may_not_look_gets_a_warning(control_plane: ControlPlane) -> None:
    result = run(control_plane.user_kubeconfig("nobody-in-particular"))
    assert (result.exit_code, result.stdout) == (0, definitions())
    assert result.stderr.startswith("karpool: warning: printed without a check of the cluster: ")
    assert "nobody-in-particular" in result.stderr


def test_a_definition_that_others_share_is_left_out_where_it_is_there(
    control_plane: ControlPlane, admin: Client
) -> None:
    (shared,) = SHARED
    label(admin, shared, "Helm")
    try:
        result = run(control_plane.kubeconfig())
    finally:
        label(admin, shared, "karpool")
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", definitions(SHARED))
    assert shared not in result.stdout
