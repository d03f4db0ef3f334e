"""Backend 1: the high-level consumer of Kafka 0.8.2, which rebalances through ZooKeeper alone."""
