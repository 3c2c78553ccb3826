"""The controller: keeps the cluster's state, decides, provisions and reconciles, in the simulator and on Kubernetes.

It may import disruption, execution, provisioning, packing, cluster, catalog and model, and the store of kube. It does
not talk to an API server, print, or read the clock: what it needs of a cluster is declared in `ports`.
"""
