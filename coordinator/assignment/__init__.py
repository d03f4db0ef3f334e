"""The sticky strategies from bytes to bytes: a million partitions without a million Python objects.

Reading order: `sticky` (read, assign, encode), `subscription_arrays` (JoinGroup's bytes to arrays), with
`claimed_partitions` and `topic_names` below it, and `assignment_arrays` (arrays to SyncGroup's bytes).
"""
