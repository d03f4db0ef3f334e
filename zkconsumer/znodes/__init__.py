"""What the znodes hold, byte for byte, and the topic patterns that some of them name. Pure."""
