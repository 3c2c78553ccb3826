"""Rules that objects must keep, by kind: each yields the flaws of an object."""
