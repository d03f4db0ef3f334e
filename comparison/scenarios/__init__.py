"""Experiments: `plan/` says what is done, `run/` does it, on a `testbed/` of `processes/`."""
