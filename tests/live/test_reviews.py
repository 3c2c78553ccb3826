"""Metrics beyond the loopback interface: a real API server says who may read them."""

import asyncio

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.scraping import reachable_address, scrape, token_of

from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.observability.reviews import TokenReviews
from karpool.observability.serving import metrics_page, probe_page, serving


@pytest.mark.parametrize(
    ("token", "path", "expected"),
    [
        ("reader", "/metrics", 200),
        ("stranger", "/metrics", 403),
        ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl", "/metrics", 401),
        (None, "/metrics", 401),
        (None, "/healthz", 200),
    ],
    ids=["role", "no role", "forged", "no token", "probe"],
)
def test_metrics_are_for_accounts_with_the_role_and_probes_for_everybody(
    control_plane: ControlPlane, token: str | None, path: str, expected: int
) -> None:
    async def scenario() -> tuple[int, str]:
        async with Client(find_target(kubeconfig=control_plane.kubeconfig())) as client:
            tokens = {
                "reader": await token_of(client, "reader", may_read=True),
                "stranger": await token_of(client, "stranger", may_read=False),
            }
            address = reachable_address()
            pages = [metrics_page(address, lambda: b"up 1\n"), probe_page("/healthz", address, lambda: None)]
            async with serving(pages, TokenReviews(client)):
                return await scrape(address, tokens.get(token or "", token), path)

    status, text = asyncio.run(scenario())
    assert status == expected
    if token == "stranger":  # noqa: S105
        assert text == "system:serviceaccount:default:stranger may not get /metrics\n"
