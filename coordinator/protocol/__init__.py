"""Bytes that both sides write and read: subscriptions, assignments, the server design's messages, its znodes."""
