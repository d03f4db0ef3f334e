"""Completion in shells. To import every command takes seconds, so completion reads a table of them from the cache."""
