"""The classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Reading order: `states` (the table), `group` (its data), `rebalance` (the join barrier), then the requests: `join`,
`sync`, `liveness` (heartbeat, leave, expiry), `static_replacement`; `groups` has all groups of a partition.

The protocol is Kafka's (KIP-62, KIP-134, KIP-345, KIP-394); where versions differ, as in 4.1.1.
"""
