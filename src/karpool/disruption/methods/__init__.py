"""The methods of disruption, one file each; which sets of nodes are tried, and what comes in their place."""
