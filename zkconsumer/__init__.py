"""Backend 1: the high-level consumer of Kafka 0.8.2, which rebalances through ZooKeeper alone.

A map, from what decides to what acts; `docs/zookeeper-consumer.md` follows one member through it.

- Decides (pure): `rebalance` is one member's state machine. `table` lists the steps of an attempt; `reading`,
  `releasing`, `deciding` and `claiming` hold them; `attempt` walks through them; `machine` decides what comes between
  attempts and rebalances. `znodes` defines the contents of the znodes.
- Acts: `watching` reads ZooKeeper and delivers changes. `records` fetches records and hands them out. `offsets` commits
  positions to ZooKeeper and Kafka. `member` registers, subscribes, and performs what the rebalance decides.
- The interface: `consumer` and `settings`.
"""
