"""The controller: decisions and execution on a cluster that changes, the same in the simulator and on Kubernetes."""
