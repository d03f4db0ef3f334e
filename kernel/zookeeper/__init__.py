"""A real ZooKeeper to start and stop, and the one adapter around kazoo, which hides its threads and errors."""
