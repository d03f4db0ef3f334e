"""What a group's events say in order: rounds, requests, steps, and the group at a moment."""
