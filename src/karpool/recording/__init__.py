"""Recordings: the history of a cluster in one growing file, what may be kept of it, and how it comes about.

Here are the format, a reader and a writer, the observer that turns objects into records, and the ways to a recording: a
live cluster, and what others wrote down.
It may import `live` and everything below. It simulates nothing: `virtual` does.
"""
