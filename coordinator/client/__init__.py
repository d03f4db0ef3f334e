"""The member's side, acting: consumers whose streams are group members, each with a connection to the coordinator.

Reading order: `consumer` and `polling` (the public interface and the poll loop), `stream` (one classic member: its
requests and callbacks), `member_runner` (what runs any member: steps its table, performs effects, keeps its timer),
`link` and `calls` (connection and requests), `group_leader` (assigning, as the group's leader), `join_metadata` (what
JoinGroup carries), `commits`, `positions`, `fetcher`, `topic_watcher`, `settings`. On top of `polling` and
`member_runner`, `server/` is the same for the `server` design, and `kip848/`, with `subscribing` in between, for
KIP-848.
"""
