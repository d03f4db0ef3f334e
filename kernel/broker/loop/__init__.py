"""The event loop: readiness of sockets, time budgets and measurement of turns, garbage collection."""
