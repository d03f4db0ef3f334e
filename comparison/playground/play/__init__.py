"""The game: real groups, played against by commands."""
