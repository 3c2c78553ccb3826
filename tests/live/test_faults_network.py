"""Network faults: refused, late and lost responses, cut watches, a server that is gone."""

import asyncio

from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import command_begins, expect_replaced_and_clean, grown, shrink
from tests.live.proxy import AtRandom, Proxy
from tests.live.trial import Trial, play


def test_refused_late_and_lost_answers_only_cost_time(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        chance = AtRandom(seed=7, share=0.12)
        async with Proxy(trial.target, chance, delay=0.5) as proxy, grown(trial, target=proxy.target) as monitor:
            await shrink(trial)
            await expect_replaced_and_clean(trial, monitor)
            assert set(chance.made) == set(chance.troubles)

    play(running_cluster, scenario)


def test_watches_that_are_cut_in_the_middle_of_a_line_go_on(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        async with Proxy(trial.target) as proxy, grown(trial, target=proxy.target) as monitor:
            await shrink(trial)
            await command_begins(trial, "one")
            for _ in range(6):
                assert proxy.cut_watches() > 0
                await asyncio.sleep(0.5)
            await expect_replaced_and_clean(trial, monitor)

    play(running_cluster, scenario)


def test_an_api_server_that_restarts_or_is_away_for_a_while_only_costs_time(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        async with grown(trial) as monitor:
            for name, seconds in (("one", 0), ("two", 4)):
                await shrink(trial, name)
                await command_begins(trial, name)
                await asyncio.to_thread(running_cluster.kill_apiserver)
                await asyncio.sleep(seconds)
                await asyncio.to_thread(running_cluster.start_apiserver)
            await shrink(trial, "three")
            await expect_replaced_and_clean(trial, monitor)

    play(running_cluster, scenario)


def test_versions_that_etcd_has_forgotten_are_read_anew(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        async with Proxy(trial.target) as proxy, grown(trial, target=proxy.target) as monitor:
            await shrink(trial)
            await command_begins(trial, "one")
            lists = proxy.lists
            await asyncio.to_thread(running_cluster.kill_apiserver)
            await asyncio.to_thread(running_cluster.compact_etcd)
            await asyncio.to_thread(running_cluster.start_apiserver)
            await expect_replaced_and_clean(trial, monitor)
            assert proxy.lists > lists

    play(running_cluster, scenario)
