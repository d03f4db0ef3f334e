"""What one member of a group decides: pure, as tables. `table` has the transitions, `reactions` the error codes."""
