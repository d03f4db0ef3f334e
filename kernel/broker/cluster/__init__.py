"""A broker's place in its cluster: what it follows in ZooKeeper, what the controller decides, who leads what."""
