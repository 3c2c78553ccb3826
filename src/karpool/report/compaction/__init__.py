"""The plan of the compactor, and what it says of one node."""
