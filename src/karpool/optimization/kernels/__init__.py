"""Compiled inner loops of the search for a cheaper fleet: they see arrays, never objects."""
