"""Decisions of the node compactor, as estafette-k8s-node-compactor makes them for clusters with an autoscaler.

It marks under-used nodes, chooses which to drain, explains why the others stay, and takes a drain step by step. It
imports `execution` (for actions), `packing` and what is below; it does no I/O and reads no clock. Writing to a cluster
is the work of `compactor` and `virtual`.
"""
