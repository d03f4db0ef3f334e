"""The `server` design: members register in ZooKeeper, one coordinator watches, assigns, and commands them."""
