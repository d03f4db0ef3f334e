"""The broker's side, as it decides: the groups of one partition of `__consumer_offsets` as a pure state machine.

`machine` is the one entrance, for both kinds of group: `shard` has the classic ones (`classic/`, with their `offsets/`
and transactions), `server/` those of the server design. Requests, time and storage results go in, an `Outcome` comes
out.

Nothing here waits, reads a clock, draws a random number or touches a socket. A caller does, in this order, for every
`Outcome` that it is handed:

1. set and cancel the timers, and pass on the trace events;
2. send the answers (`Reply`), and forget the tokens in `abandoned`: nobody will ever answer them;
3. store the records of each `Write`, all of one partition in the order in which they were handed out, and then tell the
   machine (`stored` or `not_stored`), which hands out the next `Outcome`.

What a client is told is durable (a commit, an assignment) is therefore answered only by step 3's outcome.

    outcome = shard.join(request, now)
    for write in outcome.writes:
        await log.upsert(...)
        outcome = shard.stored(write.then, now)
"""
