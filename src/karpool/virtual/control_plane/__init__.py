"""Stand-ins for an API server, controllers of workloads, kube-scheduler, kubelets and drivers of devices."""
