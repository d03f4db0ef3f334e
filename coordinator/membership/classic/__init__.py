"""What one member of a classic group decides. `table` has the transitions, and `step` is the only way to move."""
