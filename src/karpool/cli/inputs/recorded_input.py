"""What is wrong with a recording that is to be replayed, and what should be known of it."""

from karpool.report.formatting import age, count
from karpool.virtual.curves import seconds
from karpool.virtual.replays.demand import Demand
from karpool.virtual.scenario import Scenario
from karpool.wire.problems import InputError


def check_recording(demand: Demand, scenario: Scenario, *, name: str, option: bool) -> None:
    """Refuse a recording without content, and to replay more of one than there is; `option`: --length says how much."""
    if not demand.seen:
        raise InputError.at(name, f"holds nothing to replay{_and(torn_words(demand))}")
    asked, most = seconds(scenario.length), max(1, round(demand.length))
    if asked > most:
        message = (
            f"is {age(asked)}, and nothing is recorded beyond {age(most)}; name at most that, or nothing for all of it"
        )
        raise InputError.at("--length", message) if option else InputError.at(name, message, field="length")


def torn_words(demand: Demand | None) -> str:
    """What a crash or a damaged copy cost; empty if everything could be read."""
    if demand is None or not demand.torn:
        return ""
    return f"{count(demand.torn, 'byte')} at the end {'is' if demand.torn == 1 else 'are'} unreadable, and left out"


def _and(words: str) -> str:
    return f"; {words}" if words else ""
