"""Committed offsets: `commits` says when and where, `fences` guards writes to ZooKeeper, `kafka` talks to Kafka."""
