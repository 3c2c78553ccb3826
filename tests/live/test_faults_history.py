"""Random faults over a story on a real API server; its whole history is checked by code that knows no controller."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from aiohttp import web
from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import NAMES, ONE_EACH, command_begins, prepare, replaced, shrink
from tests.live.invariants import expect_still_working, wait_until_settled
from tests.live.proxy import AtRandom, Trouble
from tests.live.recorded_history import HistoryLog, RecordingProxy
from tests.live.trial import SETTINGS, Trial, play
from tests.robustness.checker.check import check
from tests.robustness.checker.records import Change, Record, Request, decoded, encoded

from karpool.disruption.settings import PREFIX

PREFIX_SEARCH = replace(SETTINGS, decisions=replace(SETTINGS.decisions, search=PREFIX))
"""Quicker than a global search, and all the same to this test."""


class Replicas:
    """Two replicas, each behind a proxy of its own, and what may happen to them."""

    def __init__(self, trial: Trial, log: HistoryLog, stack: AsyncExitStack, rng: random.Random) -> None:
        self._trial = trial
        self._log = log
        self._stack = stack
        self._rng = rng
        self._proxies: dict[asyncio.Task[None], RecordingProxy] = {}

    async def start(self) -> None:
        proxy = await self._stack.enter_async_context(RecordingProxy(self._trial.target, "", self._log))
        task = self._trial.start(target=proxy.target)
        proxy.who = self._trial.operators[task][0].identity
        self._proxies[task] = proxy

    def _leader(self) -> asyncio.Task[None] | None:
        return next((task for task, (operator, _) in self._trial.operators.items() if operator.leading), None)

    async def spoil_requests(self) -> None:
        """Requests of all kinds are refused, late, or lose their answers."""
        chance = AtRandom(seed=self._rng.randrange(10**6), share=0.15)
        await self._spoil(chance, 4.0)

    async def refuse_claims(self) -> None:
        """A webhook refuses every NodeClaim."""

        def refuse(request: web.Request) -> Trouble | None:
            creates = request.method == "POST" and request.path.endswith("/nodeclaims")
            return Trouble.INTERNAL if creates else None

        await self._spoil(refuse, 3.0)

    async def cut_off(self) -> None:
        """The leader reaches nothing for longer than its lease lasts."""
        leader = self._leader()
        if leader is not None:
            self._proxies[leader].spoil = lambda _: Trouble.BROKEN
            self._proxies[leader].cut_watches()
            await asyncio.sleep(4.0)
            self._proxies[leader].spoil = None

    async def cut_watches(self) -> None:
        for _ in range(4):
            for proxy in self._proxies.values():
                proxy.cut_watches()
            await asyncio.sleep(0.5)

    async def kill_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            await self._trial.kill(leader)
            del self._proxies[leader]
            await self.start()

    async def _spoil(self, choice: Callable[[web.Request], Trouble | None], seconds: float) -> None:
        for proxy in self._proxies.values():
            proxy.spoil = choice
        await asyncio.sleep(seconds)
        for proxy in self._proxies.values():
            proxy.spoil = None


def expect_doctored_found(records: list[Record]) -> None:
    """The same history with other rules in it breaks them: nothing was overlooked for lack of records."""
    text = encoded(records)
    closed = decoded(text.replace(b'"budgets":[{"nodes":"1"}]', b'"budgets":[{"nodes":"0"}]'))
    protected, written = decoded(text), decoded(text)
    for change in protected:
        if isinstance(change, Change) and change.kind == "Pod" and change.object is not None:
            change.object["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    for request in written:
        if isinstance(request, Request):
            request.who = "nobody"
    for rule, doctored in (("Budget", closed), ("DoNotDisrupt", protected), ("Lease", written)):
        assert rule in {violation.rule for violation in check(doctored)}


@pytest.mark.parametrize("seed", [1, 2])
def test_no_rule_is_broken_whatever_the_faults(running_cluster: ControlPlane, seed: int) -> None:
    async def scenario(trial: Trial) -> None:
        rng = random.Random(seed)
        await prepare(trial, *NAMES)
        async with AsyncExitStack() as stack:
            log = await stack.enter_async_context(HistoryLog(trial, seed))
            replicas = Replicas(trial, log, stack, rng)
            await replicas.start()
            await replicas.start()
            await wait_until_settled(trial, ONE_EACH)
            trouble: list[Callable[[], Awaitable[None]]] = [
                replicas.spoil_requests,
                replicas.refuse_claims,
                replicas.cut_off,
                replicas.cut_watches,
                replicas.kill_leader,
            ]
            for name, happens in zip(NAMES, rng.sample(trouble, len(NAMES)), strict=True):
                await shrink(trial, name)
                await command_begins(trial, name)
                await happens()
            log.faults_stop()
            await replaced(trial)
            await expect_still_working(trial)
            await wait_until_settled(trial, ONE_EACH)
            records = log.records()
        assert [str(violation) for violation in check(records)] == []
        verbs = {record.verb for record in records if isinstance(record, Request) and record.status // 100 == 2}
        assert verbs >= {"create", "patch", "delete", "evict"}
        expect_doctored_found(records)

    play(running_cluster, scenario, PREFIX_SEARCH)
