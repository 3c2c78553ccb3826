"""What if something were otherwise? Knobs that change a question, and plans for the question as it is and as changed.

A `Question` is all that a plan is made of: objects, catalogue, settings, options and a moment. A knob gives another
question; nothing is changed in place. `blockers` asks which rule or object keeps most money where it is, by turning the
knob that lifts it. It imports what `disruption` imports, and nothing of what is outside.
"""
