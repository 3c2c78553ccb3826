"""The cheapest fleet that the rules allow, the commands that lead there, and the price that no plan can go below.

Here are the cluster as a problem for `optimization`, targets, how a plan and a running cluster follow them, and the
lower bound. It imports `optimization`, what `disruption` knows about nodes, budgets and policies, and what is below.
It decides nothing by itself: the engine judges every command. Sets of nodes in the order of their cost are the work of
`disruption/methods/search.py`.
"""
