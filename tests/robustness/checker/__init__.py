"""Judges the history of a cluster: which rules were broken, by whom and when.

It reads Kubernetes objects as JSON and requests as they were sent, and imports nothing of Karpool: what it knows of the
controller is what its documentation promises.
"""
