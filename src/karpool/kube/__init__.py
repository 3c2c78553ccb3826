"""A Kubernetes client that knows nothing of Karpool, and could be published alone.

It offers typed reads, writes, lists and watches (`client`), kubeconfig files and credentials (`kubeconfig`), caches
that follow a watch (`reflector`, `cache`, `store`), leader election (`election`) and the server's clock
(`server_time`). It may import `wire` only. It is not for kinds, names and rules of Karpool: see `model` and `live`.
"""
