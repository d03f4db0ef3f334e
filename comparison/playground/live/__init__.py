"""What a game looks like, from its events: pure but for `following.py`, which reads trace files as they grow."""
