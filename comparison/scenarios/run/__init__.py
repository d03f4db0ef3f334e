"""Performs a run from start to end: steps, faults, changes, final reads."""
