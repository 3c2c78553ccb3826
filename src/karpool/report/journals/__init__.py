"""The decision journal, and the timeline that is made of it."""
