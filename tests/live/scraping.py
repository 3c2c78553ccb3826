"""Reads metrics beyond the loopback interface, as a service account that may or may not."""

import json
import socket
from contextlib import suppress

import aiohttp
from tests.live import manifests

from karpool.kube.client import Client
from karpool.kube.errors import ConflictError
from karpool.observability.serving import Address

READER = manifests.DEPLOY / "metrics-reader.yaml"


def reachable_address() -> Address:
    """An address that other machines can connect to, too; nobody else listens on its port."""
    with socket.socket() as trial:
        trial.bind(("", 0))
        return Address("0.0.0.0", trial.getsockname()[1])  # noqa: S104


async def token_of(client: Client, account: str, *, may_read: bool) -> str:
    """A token of a service account in `default`, bound to the shipped role of readers or not."""
    path = "/api/v1/namespaces/default/serviceaccounts"
    with suppress(ConflictError):  # an earlier test made it
        await client.raw("POST", path, body=json.dumps({"metadata": {"name": account}}).encode())
    (role,) = manifests.read(READER)
    await manifests.apply(client, role)
    if may_read:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role["metadata"]["name"],
            },
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }
        await manifests.apply(client, binding)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = json.loads(await client.raw("POST", f"{path}/{account}/token", body=json.dumps(asked).encode()))
    return str(answer["status"]["token"])


async def scrape(address: Address, token: str | None, path: str = "/metrics") -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{address.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text()
