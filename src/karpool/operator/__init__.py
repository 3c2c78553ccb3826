"""`karpool run`: the process that runs the controller against an API server.

It holds the loop, the actuator, the launcher of instances, the providers, the journal, reports of decisions, and the
status of pools. It imports `report`, `controller`, `live`, `observability` and what is below, but never `compactor`.
Decisions are made in `disruption` and `provisioning`; web pages and other observers are passed in by `cli`.
"""
