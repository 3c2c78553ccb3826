"""What experienced people would warn about: rules that name an object, say what is so, and what it costs.

One file for each rule, `rules` lists them, and `costs` says what a finding costs: the price of the fleet that the
engine plans for the cluster as it is, less that of the cluster as the rule would have it. It imports `disruption` and
what is below; it does no I/O and reads no clock. What a cluster must not hold at all is the work of `model.validation`.
"""
