"""What-ifs, and what keeps the most money where it is."""
