"""The parts of a run: ZooKeeper, brokers, members, load, proxies, observers."""
