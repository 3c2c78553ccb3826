"""Node groups: what a plan makes of each, and what could be there instead."""
