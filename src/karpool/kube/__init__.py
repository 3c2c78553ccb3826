"""A Kubernetes client that knows nothing of Karpool, and could be published alone.

It offers typed reads, writes, lists and watches (`client`), kubeconfig files and credentials (`kubeconfig`), caches
that follow a watch (`reflector`, `cache`, `store`) and tell when it is stalled (`watch_probe`), leader election
(`election`, `election_thread`) and the time of the servers (`server_time`). It may import `wire` only. It is not for
kinds, names and rules of Karpool: see `model` and `live`.
"""
