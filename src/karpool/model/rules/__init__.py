"""Rules that objects must keep, each with the sentence for whoever broke it."""
