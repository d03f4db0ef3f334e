"""A consumer of the `server` design: its registration in ZooKeeper and the commands that it awaits."""
