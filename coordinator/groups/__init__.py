"""The broker's side, deciding: the groups of one partition of `__consumer_offsets` as a pure state machine.

`machine` is the one entrance for groups of all designs: `classic/` has groups with JoinGroup and SyncGroup, `server/`
those of the server design, `consumer/` those of KIP-848, `mixed/` the classic members in these, `conversion/` what
turns one into the other, `offsets/` the committed offsets and transactions of all. Requests, time and storage results
go in, `Effects` come out.

Nothing here waits, reads a clock, draws a random number or touches a socket. For all `Effects` that it is handed, a
caller does the following, in this order:

1. set and cancel the timers, and emit the trace events;
2. send the answers (`Reply`), and forget the tokens in `abandoned`, which will never be answered;
3. store the records of each `Write`, all of one partition in the order in which they were handed out, and report each
   (`stored` or `not_stored`), which hands out further `Effects`.

An answer that promises durability (a commit's, an assignment's) is therefore among the effects of step 3.

    effects = machine.handle(request, now)
    for write in effects.writes:
        await log.upsert(...)
        effects = machine.step(write.stored, now)
"""
