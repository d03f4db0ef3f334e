"""Groups of the `consumer` design (KIP-848): ConsumerGroupHeartbeat, and everything that follows from it.

Reading order: `states` (the table of a member), `member` and `group` (the data, from `groups.consumer_records`),
`reconciliation` (how a member gets from what it has to its target), `target` (who shall have what; `target_table` has
it as arrays), `searching` (which topics match regular expressions), then the requests: `heartbeat`, `leaving`,
`fencing`. `groups` has all groups of a partition, `description` what ConsumerGroupDescribe shows, `traces` what traces
say.

A request computes records from the state, and the state changes only by applying records, at once; the answer follows
when they are durable. So a successor that replays the log has the same state (Kafka's GroupMetadataManager, 4.1.1).

The machine of a partition has these groups beside the others and loads their records.
"""
