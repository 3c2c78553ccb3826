"""The command line: options, and what each command reads, decides and prints.

A module is a command, or options that commands share. It may import every other package, slow ones only when a command
needs them. It holds no logic of decisions or of clusters.
"""
