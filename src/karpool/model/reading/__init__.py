"""From files and bytes to typed objects, and what is said of those that cannot be read."""
