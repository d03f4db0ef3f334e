"""From what was measured of a run to its figures and verdicts; plain Python."""
