"""Members of the classic protocol in a group of the `consumer` design, while its members migrate (KIP-848).

To the group they are members like any other, with a target and an epoch. What differs is how they learn of it:

JoinGroup   reports the owned partitions, and takes the member on towards its target; the generation is its epoch
SyncGroup   brings the assignment
Heartbeat   says when to join again: the group has a newer epoch, the member has to give partitions up, or everything
            that it waits for is free

So an eager member gives everything up whenever its target changes, a cooperative one only what it must. Nobody leads,
nothing is parked, and members that do not rejoin or sync within their rebalance timeout are removed
(GroupMetadataManager.classicGroup...ToConsumerGroup, 4.1.1).
"""
