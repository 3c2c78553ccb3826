"""`karpool compact`: the process that runs the node compactor against an API server.

It holds the loop, the configuration source and the actuators. It imports `compaction`, `live`, `observability`, `kube`
and what is below, but never `operator`. Decisions are made in `compaction`; command-line options belong to `cli`.
"""
