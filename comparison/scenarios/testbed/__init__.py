"""What a run stands on: ZooKeeper, brokers, members, the load, proxies, and what is observed."""
