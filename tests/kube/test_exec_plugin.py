"""Credential plugins: what they are given, when they run again, and how they fail."""

import asyncio
import json
import sys
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.kube.kubeconfigs import (
    SECRET,
    SERVER,
    V1,
    answering,
    exec_user,
    headers_of,
    plugin,
    runs,
    target_of,
    written,
)
from tests.kube.scripted_server import ScriptedServer, raw_object, refuses, says

from karpool.kube.errors import CredentialsError
from karpool.kube.exec_plugin import ExecPlugin, PluginCredentials
from karpool.kube.kubeconfig_files import ExecConfig
from karpool.live.resources import NODES


def test_a_plugin_gives_a_token_and_is_told_what_it_needs(tmp_path: Path) -> None:
    output = tmp_path / "told"
    code = (
        f"open({str(output)!r}, 'w').write(json.dumps([os.environ['KUBERNETES_EXEC_INFO'], os.environ['A'], sys.argv]))"
    )
    path = plugin(tmp_path, f"{code}\n{answering(SECRET)}")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    user = exec_user("./plugin", args=["login", "-x"], env=[{"name": "A", "value": "1"}], provideClusterInfo=True)
    cluster = {"certificate-authority-data": "Y2E=", "extensions": [extension], "tls-server-name": "k"}
    target = target_of(written(tmp_path, user=user, cluster=cluster))
    assert headers_of(target) == {"Authorization": f"Bearer {SECRET}"}
    info, variable, arguments = json.loads(output.read_text())
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": SERVER,
                "tls-server-name": "k",
                "certificate-authority-data": "Y2E=",
                "config": {"audience": "me"},
            },
        },
    }
    assert (variable, arguments[1:], runs(path)) == ("1", ["login", "-x"], 1)


def test_what_a_plugin_said_is_kept_until_it_expires(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    path = plugin(tmp_path, answering(SECRET, expirationTimestamp="2026-01-01T01:00:00Z"))
    clock = [now]

    async def scenario() -> None:
        credentials = PluginCredentials(ExecPlugin(ExecConfig(api_version=V1, command=str(path))), now=lambda: clock[0])
        await asyncio.gather(*(credentials.headers() for _ in range(5)))
        clock[0] = now + timedelta(minutes=59)
        await credentials.headers()
        assert runs(path) == 1
        clock[0] = now + timedelta(minutes=60, seconds=-5)
        await credentials.headers()
        assert runs(path) == 2

    asyncio.run(scenario())


def test_a_refused_token_makes_the_plugin_run_once_for_all_who_ask(tmp_path: Path) -> None:
    counting = "token-' + str(os.path.getsize(sys.argv[0] + '.runs')) + '"
    path = plugin(tmp_path, answering(counting))

    async def scenario() -> None:
        async with ScriptedServer(refuses(401, "Unauthorized"), says(raw_object("a"))) as server:
            credentials = PluginCredentials(ExecPlugin(ExecConfig(api_version=V1, command=str(path))))
            async with server.client(credentials=credentials) as client:
                await client.get(NODES, "a")
            assert [request.headers["Authorization"] for request in server.requests] == [
                "Bearer token-1",
                "Bearer token-2",
            ]
            assert await credentials.renew({"Authorization": "Bearer token-1"})
            assert runs(path) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"sys.stderr.write('line one\\nno {SECRET} here'); sys.exit(3)", r"ended with code 3: line one\nno *** here"),
        ("sys.exit(1)", "ended with code 1: it gave no reason"),
        (f"print({SECRET!r})", "did not write an ExecCredential"),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': 'x'}))",
            f"did not write an ExecCredential of {V1}",
        ),
        (answering(""), "gave neither a token nor a certificate"),
        (answering(SECRET, clientKeyData=SECRET), "gave a certificate without its key"),
        (answering(f"{SECRET}\\u0007"), "gave a token that is not one line of text"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told_without_its_secrets(tmp_path: Path, code: str, expected: str) -> None:
    path = plugin(tmp_path, code)
    target = target_of(written(tmp_path, user=exec_user(path, env=[{"name": "S", "value": SECRET}])))
    with pytest.raises(CredentialsError) as caught:
        headers_of(target)
    assert expected in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(target) + repr(target.credentials)


def test_a_missing_plugin_comes_with_the_hint_how_to_get_it(tmp_path: Path) -> None:
    target = target_of(written(tmp_path, user=exec_user("no-such-plugin", installHint="brew install it")))
    with pytest.raises(CredentialsError, match="no-such-plugin is not there or cannot be run: brew install it"):
        headers_of(target)


def test_a_plugin_that_needs_a_person_is_not_run_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plugin(tmp_path, answering(SECRET))
    target = target_of(written(tmp_path, user=exec_user(path, interactiveMode="Always")))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CredentialsError, match="needs a person at a terminal"):
        headers_of(target)
    assert runs(path) == 0
