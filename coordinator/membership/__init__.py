"""The member's side, as it decides: pure, as tables. `classic.table` and `server.table` have the transitions."""
