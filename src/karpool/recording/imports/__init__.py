"""Recordings made of what others wrote down: snapshots, audit logs, traces, metrics.

Each module reads one kind of source and tells an observer what was there when, as if it had been seen. What a source
does not say is written into the recording as missing, with the reason.
"""
