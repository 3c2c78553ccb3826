"""Where pods would go if some nodes were gone."""
