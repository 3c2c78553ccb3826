"""The controller on a real Kubernetes: watches it, decides, and carries the decisions out through its API."""
