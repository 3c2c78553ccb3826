"""What machines there are, what they hold and what they cost."""
