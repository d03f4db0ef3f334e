"""A run as text and as a drawing of its timeline: `diagram` and `describe`."""
