"""What one member of the server design decides: pure. `table` has the transitions, `reactions` the error codes."""
