"""Replays: runs as one page that is sent to somebody, drawn as the playground draws its game."""
