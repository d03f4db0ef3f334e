"""Groups that change their type online, as their members migrate from one protocol to the other (KIP-848).

`upgrade`: the first member of the consumer protocol joins a classic group, which becomes one of the `consumer` design.
Everybody keeps its partitions; the classic members learn of it when a heartbeat tells them to rejoin, and go on as
members of that group (`coordinator.groups.mixed`).

`downgrade`: the last member of the consumer protocol leaves, or returns with the classic one. The group becomes a
classic one whose generation is the group's epoch.

These two decide. `conversions` lets a change take effect together with the records of the request that caused it, and
takes it back if they cannot be stored. Offsets and the group's id stay where they are all the while.
"""
