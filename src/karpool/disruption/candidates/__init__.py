"""Which nodes may be disrupted, by which method, and what keeps the others."""
