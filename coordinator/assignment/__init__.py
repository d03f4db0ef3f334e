"""The work of a group's leader, from bytes to bytes: a million partitions without a million objects."""
