"""A virtual cluster in memory: days of a workload in seconds, the same every time, under the real controller.

Here are scenarios, and stand-ins for the API server, workload controllers, kubelets, the scheduler, Cluster Autoscaler
and a cloud. It may import `controller` and everything below. It knows no real cluster, and shows nothing.
"""
