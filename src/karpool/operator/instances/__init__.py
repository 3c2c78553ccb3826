"""Launches, terminations and reboots of instances, each in its own task."""
