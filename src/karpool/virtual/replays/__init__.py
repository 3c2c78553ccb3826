"""Recordings in, recordings out: what drives a replay, and the history that a simulation writes."""
