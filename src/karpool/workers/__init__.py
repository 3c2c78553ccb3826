"""Many jobs at once: in processes of this machine, or on a Ray cluster.

It may import `wire`, and knows nothing of what the jobs are: who has them brings a function that can be pickled. It
keeps no results.
"""
