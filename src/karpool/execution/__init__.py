"""Turns commands and deletions into actions: small, repeatable changes of cluster objects.

It holds the ticket protocol, the steps of a command, rollback, the lifecycle of NodeClaims, drain and termination. It
imports `disruption`, `provisioning`, `cluster`, `model` and what is below; it does no I/O and reads no clock. Carrying
the actions out is the work of `operator`, `compactor` and `virtual`.
"""
