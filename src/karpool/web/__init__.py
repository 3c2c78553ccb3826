"""The console: a web page over a cluster in a file, a live cluster, or the one that a controller works on.

It may import `operator`, `report`, `live`, `disruption` and what they may import. It only shows: it serves GET and
HEAD, changes nothing in a cluster, and works answers out in a process of its own. What to show is handed in by `cli`.
"""
