"""Only the leader writes: the gate is asked again when everything that takes time is over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.kube.scripted_server import ScriptedServer, raw_object, refuses, run_against, says

from karpool.kube.client import Client
from karpool.kube.credentials import Certificate
from karpool.kube.errors import NotLeadingError
from karpool.live.resources import NODES


@dataclass
class Lead:
    """A lead that is lost at some moment."""

    held: bool = True
    asked: int = 0
    lost_after: int | None = None
    """How often it is there when somebody asks."""

    def __call__(self) -> bool:
        self.asked += 1
        if self.lost_after is not None and self.asked > self.lost_after:
            self.held = False
        return self.held


@dataclass
class SlowCredentials:
    """A plugin that takes so long that the lead is lost meanwhile."""

    lead: Lead
    lost_during: str
    certificate: Certificate | None = None
    tokens: list[str] = field(default_factory=lambda: ["old", "new"])

    async def headers(self) -> Mapping[str, str]:
        self.lead.held = self.lead.held and self.lost_during != "headers"
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        assert refused["Authorization"].endswith(self.tokens.pop(0))
        self.lead.held = self.lost_during != "renewal"
        return True


def expect_not_sent(lead: Lead, *, requests: int, **options: object) -> None:
    """A write ends with NotLeadingError, and the server has seen no more than so many requests."""
    counted: list[int] = []

    async def scenario(_: ScriptedServer, client: Client) -> None:
        for write in (
            lambda: client.merge_patch(NODES, "a", {"spec": {}}),
            lambda: client.raw("DELETE", "/api/v1/nodes/a"),
        ):
            with pytest.raises(NotLeadingError, match="does not lead"):
                await write()

    server = run_against(
        [refuses(401, "Unauthorized"), says(raw_object("a"))],
        scenario,
        write_gate=lead,
        on_request=lambda _verb, _resource, status, _seconds: counted.append(status),
        **options,
    )
    assert len(server.requests) == requests
    assert len(counted) == requests, "what was not sent is not counted"


def test_a_lead_that_is_lost_while_credentials_are_fetched_writes_nothing() -> None:
    lead = Lead()
    expect_not_sent(lead, requests=0, credentials=SlowCredentials(lead, "headers"))


def test_a_lead_that_is_lost_while_connecting_writes_nothing() -> None:
    # The first question comes before credentials and connection, the second when both are there.
    expect_not_sent(Lead(lost_after=1), requests=0)


def test_a_write_is_not_repeated_with_new_credentials_when_the_lead_is_lost_meanwhile() -> None:
    lead = Lead()
    expect_not_sent(lead, requests=1, credentials=SlowCredentials(lead, "renewal"))


def test_the_connection_can_be_used_again_after_a_write_that_was_not_sent() -> None:
    lead = Lead(lost_after=1)

    async def scenario(server: ScriptedServer, client: Client) -> None:
        with pytest.raises(NotLeadingError):
            await client.merge_patch(NODES, "a", {"spec": {}})
        assert (await client.get(NODES, "a")).name == "a"
        assert [request.method for request in server.requests] == ["GET"]

    run_against([says(raw_object("a"))], scenario, write_gate=lead)
