"""A replica of the controller in a process of its own, with short intervals: `python -m tests.live.replica URL`."""

import asyncio
import sys

from tests.live.trial import SETTINGS

from karpool.catalog.sources import open_catalog
from karpool.kube.credentials import FixedCredentials
from karpool.kube.target import Target
from karpool.live.process import run_until_signalled
from karpool.operator.operator import Operator

if __name__ == "__main__":
    catalog = open_catalog("kwok")
    target = Target(server=sys.argv[1], credentials=FixedCredentials())
    operator = Operator(SETTINGS, target, lambda _nodes, _claims, _pools: catalog)
    asyncio.run(run_until_signalled(operator.run, SETTINGS.shutdown_timeout))
