"""The coordinator designs: groups that a broker leads, in Kafka's generations from 0.9 on, and one that never shipped.

Two questions find a room: which side is it, and does it decide or do?

                 decides (pure)          does
    broker       groups/                 service/
    member       membership/             consumer/

`protocol/` has the bytes that both sides read and write, `assignment/` the work of a group's leader, bytes to bytes.
`docs/architecture.md` follows a request through all of them.
"""
