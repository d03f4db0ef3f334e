"""Who had which partition of a group, when: folded from a run's events, for every surface that shows a group."""
