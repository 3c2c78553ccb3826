"""Which nodes to create for pending pods, as NodeClaims.

Here are batches of pending pods, NodeClaims with their names and hashes, and the choice of an instance for a claim. It
may import `packing` and what is below it. It writes nothing to a cluster and removes no node: see `execution` and
`disruption`.
"""
