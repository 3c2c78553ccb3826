"""What people and programs see of a running Karpool: metrics, logs, Events and HTTP pages.

It may import `live`, `execution`, `compaction` and what they may import. It is not for deciding what happened or when
to report it: `operator` and `compactor` call it.
"""
