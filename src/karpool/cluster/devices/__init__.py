"""Dynamic resource allocation: which devices nodes can reach, who has them, and which a pod's claims would get.

Nothing here knows of columns or kernels. What cannot be worked out counts as not to
be had, with the reason.
"""
