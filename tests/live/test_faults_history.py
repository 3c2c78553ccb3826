"""Random faults over a story on a real API server; its whole history is checked by code that knows no controller."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

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
from karpool.kube.errors import ApiError

PREFIX_SEARCH = replace(SETTINGS, decisions=replace(SETTINGS.decisions, search=PREFIX))
"""Quicker than a global search, and all the same to this test."""


class Replicas:
    """Two replicas, each behind a proxy of its own, and what may happen to them; `happened` counts it."""

    def __init__(self, trial: Trial, log: HistoryLog, stack: AsyncExitStack, rng: random.Random) -> None:
        self._trial = trial
        self._log = log
        self._stack = stack
        self._rng = rng
        self._proxies: dict[asyncio.Task[None], RecordingProxy] = {}
        self.happened: Counter[str] = Counter()

    async def start(self) -> None:
        proxy = await self._stack.enter_async_context(RecordingProxy(self._trial.target, "", self._log))
        task = self._trial.start(target=proxy.target)
        proxy.who = self._trial.operators[task][0].identity
        self._proxies[task] = proxy

    def _leader(self) -> asyncio.Task[None] | None:
        return next((task for task, (operator, _) in self._trial.operators.items() if operator.leading), None)

    def _count(self, kind: str) -> None:
        self.happened[kind] += 1

    # -- requests --------------------------------------------------------------------------------------------------

    async def spoil(self, trouble: Trouble) -> None:
        """Some requests of all kinds are refused, late, or lose their answers; the first one is."""
        chance = AtRandom(seed=self._rng.randrange(10**6), share=0.2, troubles=(trouble,))

        def choose(request: web.Request) -> Trouble | None:
            first = not self.happened[str(trouble.value)] and "watch" not in request.query
            found = trouble if first and "/leases/" not in request.path else chance(request)
            self.happened[str(trouble.value)] += found is not None
            return found

        await self._spoil(choose, 3.0)

    async def refuse_claims(self) -> None:
        """A webhook refuses every NodeClaim."""
        await self._refuse_claims("a webhook", lambda: True)

    async def exceed_quota(self) -> None:
        """There may be one more NodeClaim."""
        left = iter((True,))
        await self._refuse_claims("a quota", lambda: next(left, None) is None)

    async def _refuse_claims(self, kind: str, refuses: Callable[[], bool]) -> None:
        self._count(kind)

        def refuse(request: web.Request) -> Trouble | None:
            creates = request.method == "POST" and request.path.endswith("/nodeclaims")
            return Trouble.FORBIDDEN if creates and refuses() else None

        await self._spoil(refuse, 3.0)

    async def _spoil(self, choice: Callable[[web.Request], Trouble | None], seconds: float) -> None:
        for proxy in self._proxies.values():
            proxy.spoil = choice
        await asyncio.sleep(seconds)
        for proxy in self._proxies.values():
            proxy.spoil = None

    async def say_wrong_times(self) -> None:
        """One answer in five is an hour ahead."""
        self._count("a wrong date")

        def skew(_request: web.Request) -> timedelta:
            return timedelta(hours=self._rng.random() < 0.2)

        for proxy in self._proxies.values():
            proxy.skew = skew
        await asyncio.sleep(3.0)
        for proxy in self._proxies.values():
            proxy.skew = None

    # -- watches ---------------------------------------------------------------------------------------------------

    async def cut_watches(self) -> None:
        for _ in range(4):
            for proxy in self._proxies.values():
                self.happened["a cut watch"] += proxy.cut_watches()
            await asyncio.sleep(0.5)

    async def stall_watches(self) -> None:
        """Watches are open and silent."""
        for proxy in self._proxies.values():
            proxy.stalled |= {"pods", "nodes", "nodeclaims", "nodepools"}
        self._count("a stalled watch")
        await asyncio.sleep(4.0)
        for proxy in self._proxies.values():
            proxy.stalled.clear()

    async def forget_versions(self) -> None:
        """Watches are told that their version is gone."""

        def gone(line: bytes) -> bytes:
            if not line.startswith(b'{"type":"MODIFIED"'):
                return line
            self._count("410 gone")
            status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
            return json.dumps({"type": "ERROR", "object": status}).encode()

        for proxy in self._proxies.values():
            proxy.rewrite = gone
        await self._until_happened("410 gone")
        for proxy in self._proxies.values():
            proxy.rewrite = lambda line: line

    async def _until_happened(self, kind: str) -> None:
        for _ in range(60):
            await asyncio.sleep(0.1)
            if self.happened[kind]:
                return

    # -- processes and nodes ---------------------------------------------------------------------------------------

    async def cut_off(self) -> None:
        """The leader reaches nothing for longer than its lease lasts."""
        leader = self._leader()
        if leader is not None:
            self._count("cut off")
            self._proxies[leader].spoil = lambda _: Trouble.BROKEN
            self._proxies[leader].cut_watches()
            await asyncio.sleep(4.0)
            self._proxies[leader].spoil = None

    async def kill_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            self._count("killed")
            await self._trial.kill(leader)
            del self._proxies[leader]
            await self.start()

    async def change_leader(self) -> None:
        """The leader is told to stop, and gives the lease up."""
        leader = self._leader()
        if leader is not None:
            self._count("leader changed")
            await self._trial.stop(leader)
            del self._proxies[leader]
            await self.start()

    async def lose_nodes(self) -> None:
        """No node answers for a while."""
        self._count("unready nodes")
        await self._say_ready("Unknown")
        await asyncio.sleep(2.0)
        await self._say_ready("True")

    async def _say_ready(self, status: str) -> None:
        for node in await self._trial.nodes():
            conditions = [
                {"type": known.type, "status": status if known.type == "Ready" else known.status}
                for known in node.status.conditions
            ]
            with suppress(ApiError):
                await self._trial.change(
                    "Node", node.name, {"status": {"conditions": conditions}}, subresource="status"
                )

    @property
    def troubles(self) -> list[Callable[[], Awaitable[None]]]:
        """Everything that can happen."""
        return [
            *(partial(self.spoil, trouble) for trouble in Trouble if trouble is not Trouble.FORBIDDEN),
            self.refuse_claims,
            self.exceed_quota,
            self.say_wrong_times,
            self.cut_watches,
            self.stall_watches,
            self.forget_versions,
            self.cut_off,
            self.kill_leader,
            self.change_leader,
            self.lose_nodes,
        ]


SEEDS = 3
"""Each has a third of all troubles, in an order of its own."""


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


@pytest.mark.parametrize("seed", range(SEEDS))
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
            troubles = rng.sample(mine := replicas.troubles[seed::SEEDS], len(mine))
            for number, name in enumerate(NAMES):
                await shrink(trial, name)
                await command_begins(trial, name)
                for happens in troubles[number :: len(NAMES)]:
                    await happens()
            log.faults_stop()
            await replaced(trial)
            await expect_still_working(trial)
            await wait_until_settled(trial, ONE_EACH)
            records = log.records()
        assert [str(violation) for violation in check(records)] == []
        assert len(replicas.happened) == len(troubles)
        assert all(replicas.happened.values())
        verbs = {record.verb for record in records if isinstance(record, Request) and record.status // 100 == 2}
        assert verbs >= {"create", "patch", "delete", "evict"}
        expect_doctored_found(records)

    play(running_cluster, scenario, PREFIX_SEARCH)
