"""Results as people and programs read them: JSON documents, tables in a terminal, and HTML pages.

It may import `virtual`, `controller`, `compaction` and everything below. It decides nothing, and reads nothing but its
own assets.
"""
