"""The consumer of the `server` design: it registers its members in ZooKeeper and obeys the coordinator's commands.

Reading order: `consumer` (the public interface), `stream` (one member), `registration` (its znode), `link` and `calls`
(connections and requests), `settings`, `context`.
"""
