"""Which under-used node to drain, so that the cluster's autoscaler takes it away."""
