"""Groups of the `server` design: members register in ZooKeeper; the coordinator watches, assigns, and commands."""
