"""Experiments: `plan/` describes them, `run/` performs them, on a `testbed/` of `processes/`."""
