"""Which nodes should go, and why do the others stay? Pure decisions, each with its reason.

Here are `decide`, one file for each method, the search for sets of nodes, budgets, policies and every reason code;
`fleet_search` looks for whole fleets. It imports `optimization`, `packing`, `cluster`, `catalog`, `model` and what is
below; it does no I/O and reads no clock. Nodes for pods that wait are the work of `provisioning`; carrying commands out
is that of `execution`.
"""
