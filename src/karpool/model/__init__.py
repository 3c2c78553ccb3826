"""Kubernetes objects as typed, immutable values: what a user's files say, and nothing else."""
