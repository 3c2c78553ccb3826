"""What metrics tell that nothing else counts on the way."""
