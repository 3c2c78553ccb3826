"""A cluster that lives in memory: days of a workload in seconds, the same every time, under the real decisions."""
