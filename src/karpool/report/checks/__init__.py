"""What `lint` and `validate` find, for people and for CI systems."""
