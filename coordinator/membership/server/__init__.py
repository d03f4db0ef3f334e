"""What one member of the `server` design decides: the ZooKeeper session, the registration, and stop and start commands.

Reading order: `member` (the states and the value), `table` (what each state does with each event, and `step`, the only
way to change a member), `events` and `effects` (what goes in and comes out), `actions` (what the table names), `moves`
(what actions are made of), `reactions` (error codes to events).
"""
