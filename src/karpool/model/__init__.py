"""Kubernetes and Karpenter objects as typed, immutable values, and the rules that they must keep.

Here are types, the decoding of manifests, validation, and what fields and annotations mean. It may import `wire` only.
It asks no cluster, decides nothing, and reads only files that it is given.
"""
