"""Which nodes should go, and why do the others stay? Pure decisions, each with its reason."""
