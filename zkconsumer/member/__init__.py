"""A member of a group: what it subscribes to, its registration, and the task that performs its rebalances."""
