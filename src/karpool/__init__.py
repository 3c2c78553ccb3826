"""Karpool puts the same pods on fewer, cheaper Kubernetes nodes: same passengers, fewer cars."""

__version__ = "0.1.0"
