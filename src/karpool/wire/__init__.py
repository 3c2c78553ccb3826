"""Kubernetes objects as text: manifests in YAML and JSON, quantities, durations, and what is wrong with them.

It imports nothing of Karpool. It is not for kinds of objects or for their rules: these are in `model`.
"""
