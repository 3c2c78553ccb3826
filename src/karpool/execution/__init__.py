"""Execution: commands and departures become actions, one safe step at a time."""
