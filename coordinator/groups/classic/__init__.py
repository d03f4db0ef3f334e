"""The classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Reading order: `states` (the table), `group` (what a group is), `rebalance` (the join barrier), then the requests:
`join`, `sync`, `liveness` (heartbeat, leave, expiry), `static_replacement`.

The protocol is Kafka's (KIP-62, KIP-134, KIP-345, KIP-394); where Kafka's versions differ, 4.1.1 is followed.
"""
