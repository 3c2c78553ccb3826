"""Where a command gets its cluster: live, from files, from a recording or a scenario."""
