"""What one member of a classic group decides: JoinGroup, SyncGroup, heartbeats and its own session timer.

Reading order: `member` (the states and the value), `table` (what each state does with each event, and `step`, the only
way to change a member), `events` and `effects` (what goes in and comes out), `actions` and `leaving` (what the table
names), `holdings` (revoking and losing partitions), `moves` (what actions are made of), `reactions` (error codes to
events).
"""
