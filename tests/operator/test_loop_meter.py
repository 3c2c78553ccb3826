"""The loop meter: a step that holds up the event loop is measured, and the log says which it was."""

import asyncio
import time

from structlog.testing import capture_logs

from karpool.live.process import background
from karpool.operator.meters.loop_meter import LoopMeter

LIMIT = 0.05


def measured(*, blocks: bool) -> tuple[list[float], list[dict[str, object]]]:
    """By how much beats were late, and what was logged."""

    async def story() -> list[float]:
        beats: asyncio.Queue[float] = asyncio.Queue()
        meter = LoopMeter(beats.put_nowait, beat=0.001, limit=LIMIT if blocks else 60.0)
        async with background(meter.run()):
            before = [await beats.get() for _ in range(3)]
            if blocks:
                hold_up(meter)
            return before + [await beats.get() for _ in range(6)]

    with capture_logs() as logs:
        late = asyncio.run(story())
    return late, [dict(line) for line in logs]


def hold_up(meter: LoopMeter) -> None:
    """Keep the loop until it was seen, and until the step is longer than the limit."""
    time.sleep(2 * LIMIT)
    while not meter.where:
        time.sleep(0.001)


def test_a_step_that_holds_up_the_loop_is_named_once() -> None:
    late, logs = measured(blocks=True)
    assert max(late) >= LIMIT
    named = [line for line in logs if line["event"] == "the event loop was held up" and "hold_up" in str(line["by"])]
    assert len(named) == 1
    assert named[0]["log_level"] == "warning"


def test_a_loop_that_is_not_held_up_is_measured_without_a_word() -> None:
    late, logs = measured(blocks=False)
    assert min(late) >= 0
    assert logs == []
