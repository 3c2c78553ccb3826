"""What is known of the cluster cannot be trusted: the time is in doubt, or a watch brings no news.

Unlike other brakes, this one looks at no object: whoever reads the cluster says what is wrong.
"""

from collections.abc import Iterator, Mapping

from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode


def doubts(time: str, watches: Mapping[str, str]) -> Iterator[Stop]:
    """A stop of everything for a time that is in doubt, and for each kind whose watch is: why, if at all."""
    if time:
        yield Stop(ReasonCode.TIME_IN_DOUBT, f"the time is in doubt: {time}", "Clock")
    for kind, why in watches.items():
        yield Stop(ReasonCode.WATCH_IN_DOUBT, f"what is known of {kind} is in doubt: {why}", "Watch")
