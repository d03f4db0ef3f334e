"""Backend 1: the high-level consumer of Kafka 0.8.2, which rebalances through ZooKeeper alone.

A map, in reading order; `docs/zookeeper-consumer.md` follows one member through it.

- What is decided, and pure: `table` (the steps of a rebalance) with `reading`, `releasing`, `deciding`, `claiming`
  (what each asks, and where its answers lead), `rebalance` (walks through them), `between` (what happens between two),
  `state`, `effects`, `row`, `rules`; `assignment` (who gets what), `payloads` (what znodes hold), `filters`
  (patterns).
- What performs it: `executor`; `watching` (watches and their delivery), `topic_watching` (new topics of a pattern).
- The member: `consumer` (the interface), `membership` (registering and subscribing), `registration`, `subscription`,
  `settings`.
- Records: `leaders` and `fetchers` bring them, `chunks` judges them, `streams` and `iterators` hand them out,
  `delivery` tells of it; `broker_list` reads who there is.
- Offsets: `offsets` (when and where), `commit_fences` (to ZooKeeper), `kafka_offsets` (to Kafka).
"""
