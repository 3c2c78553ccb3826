"""Options that several commands have; they mean the same in each."""
