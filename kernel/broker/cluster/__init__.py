"""A broker's place in its cluster: what it follows in ZooKeeper, the controller's decisions, leadership."""
