"""The designs with a coordinator: groups led by a broker, as in Kafka from 0.9 on, and as in one that never shipped.

Two questions find a module: which side is it on, and does it decide or act?

                 decides (pure)          acts
    broker       groups/                 service/
    member       membership/             consumer/

`protocol/` has the bytes that both sides read and write, `assignment/` the work of a group's leader, bytes to bytes.
`docs/architecture.md` follows a request through all of them.
"""
