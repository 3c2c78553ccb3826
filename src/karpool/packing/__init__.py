"""Where pods would go if some nodes were gone: the engine, its compiled kernels, and why a pod finds no place.

Here are what-ifs on a snapshot, scans of many sets of nodes, and the tables of pools and types that both need. It may
import `cluster`, `catalog` and what is below them. It decides nothing and changes no cluster: see `disruption` and
`provisioning`.
"""
