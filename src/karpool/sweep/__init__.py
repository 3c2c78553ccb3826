"""Many settings tried on the virtual cluster: which of them cost little, and which disturb few pods.

It may import `virtual` and everything below. It shows nothing: `report` does.
"""
