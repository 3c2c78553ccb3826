"""A cluster as columns: nodes, pods, rules and counts in arrays, built from objects and updated in place.

It may import model and wire. It makes no decisions: it says what is where and what is free, not what should change.
"""
