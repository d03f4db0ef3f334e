"""The broker's TCP side: sockets, connections, budgets, and requests handed to their handlers."""
