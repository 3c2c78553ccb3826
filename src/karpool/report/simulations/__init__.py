"""What simulations, replays and sweeps came to."""
