"""Kubeconfig files: which cluster and which credentials they give, and what is wrong with them."""

import asyncio
import base64
import os
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubeconfigs import SECRET, SERVER, V1, exec_user, headers_of, target_of, written
from tests.kube.scripted_server import ScriptedServer, says
from tests.live.certificates import Authority

from karpool.kube.client import Client
from karpool.kube.credentials import TokenFile
from karpool.kube.errors import CredentialsError, UnreachableError
from karpool.kube.kubeconfig import NoClusterError, find_target
from karpool.kube.proxies import environment_proxy
from karpool.kube.target import tls_context
from karpool.kube.transport import Timeouts
from karpool.live.resources import NODES
from karpool.wire.problems import InputError

with_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")


def message(path: Path, context: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        target_of(path, context)
    return str(caught.value).removeprefix(f"{path}: ")


def test_the_current_context_says_where_and_who(tmp_path: Path) -> None:
    target = target_of(written(tmp_path, user={"token": SECRET}))
    assert (target.server, target.context, target.namespace) == (SERVER, "dev", "dev-space")
    assert headers_of(target) == {"Authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": SECRET}, f"Bearer {SECRET}"),
        ({"username": "me", "password": SECRET}, "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()),
        ({"token": None, "username": None, "client-certificate-data": None}, None),
    ],
)
def test_users_prove_who_they_are(tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
    assert headers_of(target_of(written(tmp_path, user=user))).get("Authorization") == header


def test_files_are_merged_and_the_first_to_name_something_decides(tmp_path: Path) -> None:
    first = written(tmp_path, name="one", file="first", user={"token": "first"}, **{"current-context": ""})
    second = written(tmp_path, name="two", file="second", user={"token": "second"})
    third = written(tmp_path, name="one", file="third", user={"token": "third"})
    environ = {"KUBECONFIG": os.pathsep.join(map(str, (tmp_path / "missing", first, second, third)))}
    assert find_target(environ=environ).context == "two"
    assert headers_of(find_target("one", environ=environ)) == {"Authorization": "Bearer first"}


def test_the_usual_place_is_in_the_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube")
    assert find_target(environ={"HOME": str(tmp_path)}).context == "dev"


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"an authority")
    (tmp_path / "token").write_text(f"{SECRET}\n")
    path = written(tmp_path, user={"tokenFile": "token", "token": "old"}, cluster={"certificate-authority": "ca.crt"})
    target = target_of(path)
    assert target.authority == b"an authority"
    assert headers_of(target) == {"Authorization": f"Bearer {SECRET}"}


def test_a_cluster_may_be_far_and_odd(tmp_path: Path) -> None:
    cluster = {
        "server": "https://rancher.example.com/k8s/clusters/c-1/",
        "insecure-skip-tls-verify": True,
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
    }
    target = target_of(written(tmp_path, cluster=cluster))
    assert target.server == "https://rancher.example.com/k8s/clusters/c-1"
    assert (target.verify, target.server_name, target.proxy) == (False, "kubernetes", "http://proxy:3128")


def test_somebody_may_ask_in_the_name_of_somebody_else(tmp_path: Path) -> None:
    user = {
        "token": SECRET,
        "as": "boss",
        "as-groups": ["a", "b"],
        "as-uid": "7",
        "as-user-extra": {"example.com/x": ["y"]},
    }

    async def scenario() -> None:
        headers = await target_of(written(tmp_path, user=user)).credentials.headers()
        assert list(headers.items()) == [
            ("Authorization", f"Bearer {SECRET}"),
            ("Impersonate-User", "boss"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-example.com%2Fx", "y"),
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cluster": {"server": ""}}, "cluster dev: server: expected an address such as https://10.0.0.1:6443"),
        ({"cluster": {"server": f"{SECRET}"}}, "cluster dev: server: expected an address"),
        ({"cluster": {"server": "https://[::1"}}, "cluster dev: server: expected an address"),
        ({"cluster": {"proxy-url": f"socks5://u:{SECRET}@h"}}, "cluster dev: proxy-url: expected an address"),
        ({"cluster": {"certificate-authority": "gone"}}, "certificate-authority: gone cannot be read: No such file"),
        ({"cluster": {"certificate-authority-data": SECRET}}, "certificate-authority-data: is not Base64"),
        (
            {"cluster": {"certificate-authority-data": "eA==", "insecure-skip-tls-verify": True}},
            "insecure-skip-tls-verify: is not allowed together with certificate-authority",
        ),
        ({"user": {"client-key-data": f"{SECRET}!"}}, "user dev: client-certificate: is missing"),
        ({"user": {"client-certificate": "x"}}, "user dev: client-key: is missing"),
        ({"user": {"client-certificate": "x", "client-key-data": f"{SECRET}!"}}, "client-key-data: is not Base64"),
        ({"user": {"token": {"a": SECRET}}}, "users[0].user.token: expected text, got a mapping"),
        ({"user": {"auth-provider": {"name": SECRET}}}, "user dev: auth-provider: is not supported"),
        ({"user": {"as-groups": ["a"]}}, "user dev: as: is missing"),
        ({"user": {"as": "a\nb"}}, "user dev: as: expected lines of text"),
        ({"user": {"token": f"{SECRET}\nX: y"}}, "user dev: token: expected one line of text"),
        ({"cluster": {"server": f"https://me:{SECRET}@host"}}, "cluster dev: server: expected an address"),
        ({"user": {"exec": {"command": "x"}}}, "user dev: exec.apiVersion: is not supported; use client.auth"),
        ({"user": {"exec": {"apiVersion": V1}}}, "user dev: exec.command: is missing"),
        ({"user": exec_user("x", interactiveMode=SECRET)}, "user dev: exec.interactiveMode: use one of Never"),
        ({"users": None}, "context dev: user: names the user 'dev', who is not there"),
        ({"clusters": []}, "context dev: cluster: names the cluster 'dev', which is not there"),
        ({"contexts": []}, "has no contexts; it names no cluster"),
        ({"current-context": ""}, "has no current-context; choose one with --context: dev"),
        ({"current-context": "old"}, "has no context 'old'; choose one of: dev"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    problem = message(written(tmp_path, **changes))
    assert expected in problem
    assert SECRET not in problem
    assert problem.isprintable()


@pytest.mark.parametrize("text", [f"token: [{SECRET}", f"a: 1\n {SECRET}: : x", f'{{"token": "{SECRET}', f"- {SECRET}"])
def test_a_file_that_cannot_be_read_says_where_and_not_what(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        target_of(path)
    assert str(caught.value).startswith(str(path))
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(text, "")


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    assert message(tmp_path / "gone") == "does not exist"


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    assert message(written(tmp_path), "prod") == "has no context 'prod'; choose one of: dev"


def test_without_any_cluster_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError, match="set KUBECONFIG or make ~"):
        find_target(environ={"HOME": str(tmp_path)}, service_account=tmp_path)


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_in_a_pod_the_service_account_is_used(tmp_path: Path, host: str, server: str) -> None:
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_text("authority")
    (tmp_path / "namespace").write_text("karpool\n")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443", "HTTPS_PROXY": "http://p:1"}
    target = find_target(environ=environ | {"NO_PROXY": "10.0.0.0/8"}, service_account=tmp_path)
    assert (target.server, target.namespace, target.authority) == (server, "karpool", b"authority")
    assert target.proxy == ("" if host.startswith("10.") else "http://p:1")
    assert headers_of(target) == {"Authorization": "Bearer first"}


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("first")
    (tmp_path / "two").write_text("other")
    link = tmp_path / "token"
    link.symlink_to("one")

    async def scenario() -> None:
        credentials = TokenFile(link)
        assert await credentials.headers() == {"Authorization": "Bearer first"}
        assert not await credentials.renew({"Authorization": "Bearer first"})
        link.unlink()
        link.symlink_to("two")
        assert await credentials.headers() == {"Authorization": "Bearer other"}
        assert await credentials.renew({"Authorization": "Bearer first"})
        link.unlink()
        with pytest.raises(CredentialsError, match="cannot be read: No such file"):
            await credentials.headers()

    asyncio.run(scenario())


def test_nothing_secret_shows(tmp_path: Path) -> None:
    user = {"token": SECRET, "username": "me", "password": SECRET, "client-key-data": "", "as": "boss"}
    target = target_of(written(tmp_path, user=user, cluster={"proxy-url": f"http://me:{SECRET}@127.0.0.1:1"}))

    async def scenario() -> None:
        async with Client(target, timeouts=Timeouts(retries=0)) as client:
            with pytest.raises(UnreachableError) as caught:
                await client.get(NODES, "a")
            assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
            assert SECRET not in repr(client) + repr(target) + repr(target.credentials)

    asyncio.run(scenario())


def test_a_proxy_that_says_no_keeps_its_password(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedServer(says("")) as proxy:  # knows nothing of CONNECT
            address = proxy.url.replace("http://", f"http://me:{SECRET}@")
            target = target_of(written(tmp_path, cluster={"proxy-url": address, "insecure-skip-tls-verify": True}))
            async with Client(target, timeouts=Timeouts(retries=0)) as client:
                with pytest.raises(UnreachableError, match="the proxy answered 404") as caught:
                    await client.get(NODES, "a")
                assert SECRET not in "".join(traceback.format_exception(caught.value))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("server", "exempt", "expected"),
    [
        ("https://api.example.com", "", "http://proxy:1"),
        ("https://api.example.com", "example.com", ""),
        ("https://api.example.com", "other.com, .example.com", ""),
        ("https://example.com", ".example.com", "http://proxy:1"),
        ("https://api.example.com:6443", "example.com:443", "http://proxy:1"),
        ("https://api.example.com:6443", "example.com:6443", ""),
        ("https://10.1.2.3:6443", "10.0.0.0/8", ""),
        ("https://11.1.2.3:6443", "10.0.0.0/8", "http://proxy:1"),
        ("https://[fd00::1]:6443", "fd00::/8", ""),
        ("https://api.example.com", "*", ""),
        ("https://127.0.0.1:6443", "", ""),
        ("https://localhost:6443", "", ""),
        ("http://api.example.com", "", ""),
    ],
)
def test_the_environment_may_name_a_proxy(server: str, exempt: str, expected: str) -> None:
    assert environment_proxy(server, {"HTTPS_PROXY": "proxy:1", "no_proxy": exempt}) == expected


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="HTTPS_PROXY: expected an address"):
        environment_proxy("https://api.example.com", {"HTTPS_PROXY": "socks5://h:1"})


@with_openssl
def test_certificates_are_read_from_data_and_from_files_that_change(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.client("me", ()), authority.client("other", ())
    files = {"client-certificate": "cert.pem", "client-key": "key.pem"}
    (tmp_path / "cert.pem").write_bytes(own.certificate.read_bytes())
    (tmp_path / "key.pem").write_bytes(own.key.read_bytes())
    data = {
        "client-certificate-data": base64.b64encode(own.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(own.key.read_bytes()).decode(),
    }

    async def scenario() -> None:
        for user in (files, data):
            target = target_of(written(tmp_path, user=user))
            await target.credentials.headers()
            assert target.credentials.certificate is not None
            assert target.credentials.certificate.certificate == own.certificate.read_bytes()
            tls_context(target, target.credentials.certificate)
        target = target_of(written(tmp_path, user=files))
        await target.credentials.headers()
        time.sleep(0.01)  # noqa: ASYNC251 - a file's time has steps
        (tmp_path / "cert.pem").write_bytes(other.certificate.read_bytes())
        assert await target.credentials.renew({})

    asyncio.run(scenario())


@with_openssl
def test_a_certificate_that_does_not_fit_its_key_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    user = {
        "client-certificate": str(authority.client("me", ()).certificate),
        "client-key": str(authority.client("other", ()).key),
    }

    async def scenario() -> None:
        async with Client(target_of(written(tmp_path, user=user)), timeouts=Timeouts(retries=9)) as client:
            with pytest.raises(UnreachableError, match="certificates for dev cannot be used: KEY_VALUES_MISMATCH"):
                await client.get(NODES, "a")

    asyncio.run(scenario())
