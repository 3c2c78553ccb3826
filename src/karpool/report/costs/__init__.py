"""Who pays for a cluster."""
