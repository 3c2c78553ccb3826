"""A replica of the controller in a process of its own, at the pace of tests: `python -m tests.live.replica URL`."""

import asyncio
import sys

from tests.live.trial import SETTINGS

from karpool.catalog.sources import open_catalog
from karpool.live.credentials import FixedCredentials
from karpool.live.process import run_until_signalled
from karpool.live.run import Operator
from karpool.live.target import Target

if __name__ == "__main__":
    catalog = open_catalog("kwok")
    target = Target(server=sys.argv[1], credentials=FixedCredentials())
    operator = Operator(SETTINGS, target, lambda _nodes, _claims: catalog)
    asyncio.run(run_until_signalled(operator.run, SETTINGS.goodbye))
