"""The console over a real API server while a controller works: what a browser shows is what happens."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from playwright.async_api import Page, async_playwright, expect
from tests.live.control_plane import ControlPlane
from tests.live.https import Client as Https
from tests.live.invariants import wait_until_settled
from tests.live.programs import free_port
from tests.live.trial import Trial, deployment, fill_three_nodes, journal, machines, play, pool
from tests.web.processes import KARPOOL, alive, children, console

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS: Final = 90_000.0
READERS: Final = 50
CHROMIUM: Final = shutil.which("chromium")
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ONE_TYPE: Final = {"spec": {"requirements": machines("c-4x")}}


@asynccontextmanager
async def page_of(address: str) -> AsyncIterator[tuple[Page, list[str]]]:
    """The page in a browser, and everything that goes wrong in it."""
    if CHROMIUM is None:
        pytest.skip("NOT TESTED: the console in a browser; install it with `apt-get install chromium`")
    async with async_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = await browser.new_page()
        page.set_default_timeout(SECONDS)
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(address)
        await page.wait_for_selector(".pool")
        await page.evaluate("window.opened = true")
        yield page, faults
        assert await page.evaluate("window.opened"), "the page was loaded again"
        await browser.close()


async def expect_scale_down(trial: Trial, page: Page) -> None:
    """Three nodes become one, and the page shows it, without being loaded again."""
    await expect(page.locator(".bar")).to_have_count(3)
    before = await page.locator(".hero .big").inner_text()
    await trial.change("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
    await wait_until_settled(trial, {"default": 1})
    await trial.until_running(3)
    (left,) = await trial.nodes()
    await expect(page.locator(".bar")).to_have_count(1, timeout=20_000)
    await expect(page.locator(".bar")).to_contain_text(left.name[-10:])
    await expect(page.locator(".bar .slice")).to_have_count(3)
    await expect(page.locator(".totals")).to_contain_text("none waiting for a node")
    await expect(page.locator(".lately")).to_contain_text("is gone")
    assert await page.locator(".hero .big").inner_text() != before


def test_the_page_follows_a_scale_down_to_its_end(running_cluster: ControlPlane) -> None:
    """`karpool ui` beside a controller of another process."""

    async def scenario(trial: Trial) -> None:
        await fill_three_nodes(trial, 3, cpu="1200m")
        async with AsyncExitStack() as stack:
            shown = console(f"--kubeconfig={trial.plane.kubeconfig()}", "--catalog=kwok", "--search=prefix")
            address = await asyncio.to_thread(stack.enter_context, shown)
            page, faults = await stack.enter_async_context(page_of(address))
            await expect(page.locator(".source")).to_contain_text("live")
            await expect_scale_down(trial, page)
            await page.get_by_role("link", name="Plan", exact=True).click()
            await expect(page.locator(".totals")).to_contain_text("Saves", timeout=SECONDS)
            assert faults == []

    play(running_cluster, scenario)


async def spread_over_three_nodes(trial: Trial) -> None:
    """Three pods on three nodes, one of which would hold them all."""
    await trial.make(deployment("filler", 3, cpu="2400m"))
    await trial.until_running(3)
    await trial.make(deployment("web", 3, cpu="1200m"))
    await trial.until_running(6)
    await trial.until_nodes(3)
    await trial.scale("filler", 0)
    await trial.until_running(3)


async def look_at_answers(page: Page) -> None:
    """The views that ask the engine, over the cluster as it is now."""
    await page.get_by_role("link", name="What if", exact=True).click()
    await page.get_by_role("button", name="Consolidate at once").click()
    outcome = page.locator(".outcome")
    await expect(outcome.locator(".words")).to_contain_text("consolidateAfter", timeout=SECONDS)
    await expect(outcome.get_by_role("table")).to_contain_text("$/h")
    await page.get_by_role("link", name="Blockers", exact=True).click()
    worth = page.get_by_role("heading", name="What lifting each alone is worth")
    await expect(worth).to_be_visible(timeout=SECONDS)
    await expect(page.locator("#view .working")).to_have_count(0, timeout=SECONDS)
    await page.get_by_role("link", name="Who pays", exact=True).click()
    paying = page.get_by_role("table", name="Who pays")
    await expect(paying).to_contain_text("default", timeout=SECONDS)
    await expect(paying).to_contain_text("idle")
    await page.get_by_role("link", name="Fleet", exact=True).click()
    await page.get_by_role("button", name="default", exact=True).click()
    await expect(page.locator("#sheet")).to_contain_text("Consolidation")
    await page.keyboard.press("Escape")
    await page.locator(".bar").first.click()
    await page.locator("#sheet table").get_by_role("button", name="default/web-").first.click()
    await expect(page.locator("#sheet")).to_contain_text("Why is it here?", timeout=SECONDS)
    await page.keyboard.press("Escape")


@contextmanager
def controller(
    kubeconfig: Path, written: Path, election: str = "--no-leader-elect", host: str = "127.0.0.1"
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """`karpool run` with the console, as a process; its address and its process."""
    port = free_port()
    command: list[str | Path] = [
        KARPOOL,
        "run",
        f"--kubeconfig={kubeconfig}",
        "--provider=kwok",
        "--act",
        "--search=prefix",
        election,
        "--poll-interval=300ms",
        "--validation-delay=500ms",
        "--metrics-address=0",
        "--health-address=0",
        f"--journal={written}",
        f"--ui={host}:{port}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        yield f"http://127.0.0.1:{port}/", process
    finally:
        process.terminate()
        process.wait(20)


async def answering(address: str) -> None:
    """Wait until the console has read the cluster."""
    async with ClientSession() as session:
        for _ in range(600):
            try:
                async with session.get(f"{address}data/fleet") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            await asyncio.sleep(0.2)
    raise AssertionError("the console does not answer")


def test_a_running_controller_shows_its_own_cluster(running_cluster: ControlPlane, tmp_path: Path) -> None:
    """`karpool run --ui`: the same page, with what it has done; answers come from a process that ends with it."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template=ONE_TYPE, disruption={"consolidateAfter": "Never"}))
        async with AsyncExitStack() as stack:
            running = controller(trial.plane.kubeconfig(), tmp_path / "decisions.jsonl")
            address, process = await asyncio.to_thread(stack.enter_context, running)
            await answering(address)
            await spread_over_three_nodes(trial)
            page, faults = await stack.enter_async_context(page_of(address))
            await expect(page.locator(".source")).to_contain_text("karpool run --provider kwok")
            await expect_scale_down(trial, page)
            await page.locator(".bar").first.click()
            await expect(page.locator("#sheet")).to_contain_text("Could it go alone, today?", timeout=SECONDS)
            await page.keyboard.press("Escape")
            await page.get_by_role("link", name="Timeline", exact=True).click()
            await expect(page.locator(".totals")).to_contain_text("completed, 0 under way", timeout=SECONDS)
            last = page.locator("table.list tbody tr").first
            await expect(last).to_contain_text("completed")
            await last.get_by_role("button").click()
            then = page.get_by_role("table", name="Nodes of then")
            await expect(then).to_contain_text("to be removed")
            await expect(then).to_contain_text("c-4x-amd64-linux, on-demand")
            await expect(then).to_contain_text("$/h")
            await look_at_answers(page)
            helpers = await asyncio.to_thread(children, process.pid)
            assert len(helpers) == 1
            assert faults == []
            process.terminate()
            await asyncio.to_thread(process.wait, 20)
            await trial.until("the process that answers is gone", lambda: _gone(helpers[0]))

    play(running_cluster, scenario)


def account_of(admin: Https, name: str, paths: list[str]) -> str:
    """A token of a service account that may get these paths."""
    group = "rbac.authorization.k8s.io"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert admin.post(accounts, {"metadata": {"name": name}}).status in (201, 409)
    rules = [{"nonResourceURLs": paths, "verbs": ["get"]}]
    assert admin.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}).status in (201, 409)
    role_ref = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
    binding = {"metadata": {"name": name}, "roleRef": role_ref, "subjects": subjects}
    assert admin.post(f"{RBAC}/clusterrolebindings", binding).status in (201, 409)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = admin.post(f"{accounts}/{name}/token", asked)
    assert answer.status == 201, answer
    return str(answer.body["status"]["token"])


def test_beyond_localhost_the_api_server_says_who_may_read_the_page(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    """`run --ui` on all addresses: tokens are reviewed, and their accounts need the paths of the page."""
    admin = Https(running_cluster.kubeconfig())
    tokens = {
        "reader": account_of(admin, "reads-console", ["/", "/assets/*", "/data/*"]),
        "half": account_of(admin, "reads-assets", ["/", "/assets/*"]),
        "forged": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl",
    }

    async def status(session: ClientSession, address: str, path: str, token: str | None) -> int:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        for _ in range(300):
            try:
                async with session.get(f"{address}{path}", headers=headers) as answer:
                    if answer.status != 503:
                        return answer.status
            except OSError:
                pass
            await asyncio.sleep(0.2)
        raise AssertionError("the console does not answer")

    async def scenario(trial: Trial) -> None:
        async with AsyncExitStack() as stack:
            running = controller(trial.plane.kubeconfig(), tmp_path / "decisions.jsonl", host="0.0.0.0")  # noqa: S104
            address, _ = await asyncio.to_thread(stack.enter_context, running)
            session = await stack.enter_async_context(ClientSession())
            found = {
                (who, path): await status(session, address, path, tokens.get(who))
                for who in ("nobody", "forged", "half", "reader")
                for path in ("", "assets/main.js", "data/fleet")
            }
            assert {found["nobody", path] for path in ("", "assets/main.js", "data/fleet")} == {401}
            assert {found["forged", path] for path in ("", "assets/main.js", "data/fleet")} == {401}
            assert [found["half", path] for path in ("", "assets/main.js", "data/fleet")] == [200, 200, 403]
            assert {found["reader", path] for path in ("", "assets/main.js", "data/fleet")} == {200}
            async with session.post(
                f"{address}data/fleet", headers={"Authorization": f"Bearer {tokens['reader']}"}
            ) as no:
                assert no.status == 405

    play(running_cluster, scenario)


class Reader:
    """An open page without a window: it reads everything, and follows what changes."""

    def __init__(self) -> None:
        self.nodes: set[int] = set()

    async def follow(self, session: ClientSession, address: str) -> None:
        async with session.get(f"{address}data/fleet") as answer:
            document = await answer.json()
        self.nodes = {row[0] for row in document["nodes"]}
        async with session.get(f"{address}data/pods") as answer:
            assert answer.ok
        query = {"epoch": document["epoch"], "after": str(document["number"])}
        async with session.get(f"{address}data/events", params=query) as answer:
            async for line in answer.content:
                if line.startswith(b"data: "):
                    change = json.loads(line.removeprefix(b"data: "))
                    self.nodes |= {row[0] for row in change.get("nodes", ())}
                    self.nodes -= set(change.get("goneNodes", ()))


async def plan_again_and_again(session: ClientSession, address: str) -> None:
    while True:
        async with session.get(f"{address}data/ask/plan") as answer:
            await answer.read()
        await asyncio.sleep(1)


async def lease_of(trial: Trial) -> dict[str, Any]:
    path = "/apis/coordination.k8s.io/v1/namespaces/karpool/leases/karpool"
    answer = await asyncio.to_thread(Https(trial.plane.kubeconfig()).get, path)
    assert answer.status == 200, answer
    spec: dict[str, Any] = answer.body["spec"]
    return spec


def test_a_controller_keeps_its_lease_and_decides_while_many_look(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    """Fifty open pages, ten of which ask for plans all the time, and a leader that has to renew its lease."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template=ONE_TYPE, disruption={"consolidateAfter": "Never"}))
        async with AsyncExitStack() as stack:
            running = controller(trial.plane.kubeconfig(), tmp_path / "decisions.jsonl", "--leader-elect")
            address, process = await asyncio.to_thread(stack.enter_context, running)
            await answering(address)
            await spread_over_three_nodes(trial)
            before = await lease_of(trial)
            readers = [Reader() for _ in range(READERS)]
            connections = TCPConnector(limit=0)
            session = await stack.enter_async_context(ClientSession(connector=connections, timeout=ClientTimeout()))
            following = [asyncio.create_task(reader.follow(session, address)) for reader in readers]
            following += [asyncio.create_task(plan_again_and_again(session, address)) for _ in range(READERS // 5)]

            async def all_read(nodes: int) -> bool:
                return all(len(reader.nodes) == nodes for reader in readers)

            await trial.until("every page shows three nodes", lambda: all_read(3))
            await trial.change("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
            await wait_until_settled(trial, {"default": 1})
            await trial.until("every page shows one node", lambda: all_read(1))

            async def renewed() -> bool:
                return bool((await lease_of(trial))["renewTime"] > before["renewTime"])

            await trial.until("the lease is renewed", renewed)
            after = await lease_of(trial)
            assert after["holderIdentity"] == before["holderIdentity"]
            assert after.get("leaseTransitions") == before.get("leaseTransitions")
            assert process.poll() is None
            assert not any(task.done() for task in following)
            assert len(journal(tmp_path / "decisions.jsonl", "Completed")) >= 1
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    play(running_cluster, scenario)


async def _gone(pid: int) -> bool:
    return not alive(pid)


def test_a_cluster_that_shows_little_is_shown_as_far_as_it_may_be_seen(running_cluster: ControlPlane) -> None:
    """A user who may list and watch pods and nodes only sees them, and what the others' absence means."""
    kubeconfig = onlooker(running_cluster, ["pods", "nodes"])

    async def scenario(trial: Trial) -> None:
        await fill_three_nodes(trial, 3, cpu="1200m")
        async with AsyncExitStack() as stack:
            shown = console(f"--kubeconfig={kubeconfig}", "--catalog=kwok")
            address = await asyncio.to_thread(stack.enter_context, shown)
            page, faults = await stack.enter_async_context(page_of(address))
            await expect(page.locator(".pool-facts")).to_contain_text("3 nodes")
            await page.locator("#notices summary").click()
            await expect(page.locator("#notices")).to_contain_text("poddisruptionbudgets cannot be listed, so every")
            assert faults == []

    play(running_cluster, scenario)


def test_a_cluster_that_does_not_show_its_pods_is_not_shown(running_cluster: ControlPlane) -> None:
    kubeconfig = onlooker(running_cluster, ["nodes"])
    command = [KARPOOL, "ui", "--no-browser", "--port=0", f"--kubeconfig={kubeconfig}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603
    assert ended.returncode == 1
    assert "pods cannot be listed, and nothing can be decided without them" in ended.stderr
    assert ended.stderr.count("\n") == 1


def onlooker(plane: ControlPlane, kinds: list[str]) -> Path:
    """The kubeconfig of a user who may list and watch these kinds, and nothing else."""
    admin, name = Https(plane.kubeconfig()), f"looks-at-{'-'.join(kinds)}"
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": kinds, "verbs": ["list", "watch"]}]
    role_ref = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": group, "kind": "User", "name": name}]
    assert admin.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}).status in (201, 409)
    binding = {"metadata": {"name": name}, "roleRef": role_ref, "subjects": subjects}
    assert admin.post(f"{RBAC}/clusterrolebindings", binding).status in (201, 409)
    return plane.user_kubeconfig(name)
