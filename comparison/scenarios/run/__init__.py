"""A run from start to end: its steps, faults, changes, and last readings."""
