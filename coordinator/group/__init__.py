"""The classic group coordinator as a pure state machine: requests, time and storage results in, `Outcome` out.

Reading order: `states` (the table), `group` (what a group is), `rebalance` (the join barrier), then the
request handlers `join`, `sync`, `liveness` (heartbeat, leave, expiry), `offsets`, `inspection`, and last
`shard`, the machine's one entrance for one partition of `__consumer_offsets`.

Nothing here waits, reads a clock, draws a random number or touches a socket. A caller does, in this order,
for every `Outcome` it is handed:

1. set and cancel the timers, and pass on the trace events;
2. send the answers (`Reply`), and forget the tokens in `abandoned`: nobody will ever answer them;
3. store the records of each `Write`, all of one partition in the order in which they were handed out, and
   then tell the shard (`stored` or `not_stored`), which hands out the next `Outcome`.

What a client is told is durable (a commit, an assignment) is therefore answered only by step 3's outcome.

    outcome = shard.join(request, now)
    for write in outcome.writes:
        await log.upsert(...)
        outcome = shard.stored(write.then, now)

The protocol is Kafka's (KIP-62, KIP-134, KIP-345, KIP-394); where Kafka's versions differ, 4.1.1 is followed.
"""
