"""The cheapest fleet: a search for a target, and a lower bound that no plan can beat.

Everything here works on arrays (`problem.py`) and is a pure function of them and of a seed. It may import `packing` and
what lies below it. It does not decide: `disruption` builds the arrays from a cluster, and has the engine judge every
command that leads to a target.
"""
