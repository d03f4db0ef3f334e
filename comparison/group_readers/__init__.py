"""Read a group as it is now, from its coordinator or from ZooKeeper, without taking part in it."""
