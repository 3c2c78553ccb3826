"""What disruption budgets allow when: the calendar of `karpool budgets`."""
