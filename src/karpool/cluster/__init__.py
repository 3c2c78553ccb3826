"""A cluster as columns: the facts of the model in arrays, built once and updated in place."""
