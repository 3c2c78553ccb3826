"""Provisioning: which nodes should come, for pods that wait."""
