"""The member's side, deciding: pure state machines, stepped by `coordinator.client`.

Events and the time go in, the next member and a list of effects come out. A classic member, one of the `server` design
and one of KIP-848 are three machines: `classic/`, `server/` and `consumer/`. They share the events and effects that any
member with a coordinator has (`events`, `effects`), the form of their tables (`state_table`) and the building of trace
events (`tracing`).

Beside them, for the consumer: `subscription` (names or a pattern, spread over streams), `topic_changes` (when a change
of topics makes a classic member rejoin) and `delayed_leader` (what the leader of a `delayed` group remembers).
Reading order: `events`, `effects`, `state_table`, `classic/`, `server/`, `consumer/`, then these three.
"""
