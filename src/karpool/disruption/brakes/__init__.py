"""Brakes: what stops voluntary disruption of a pool, or of everything, and why.

Each brake is a module with one function that looks at objects and the time and says which stops it holds. `stops_of`
asks all of them; to add one, write the module and list it there. Brakes have no memory of their own: what has to
outlive a restart is kept on objects. They know nothing of decisions, which only read the stops.
"""
