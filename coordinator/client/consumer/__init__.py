"""The consumer of KIP-848 (Kafka's group.protocol=consumer): the coordinator assigns, the member reconciles.

    config, warnings = Kip848ConsumerConfig.from_settings({"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"})
    consumer = Kip848Consumer(config, tracer=tracer, process="m1")

Reading order: `consumer` (the public interface), `stream` (one member: its heartbeats and callbacks), `targets` (names
of the topic ids in an assignment), `calls` (requests), `settings`, `context`. `membership.consumer` decides.
"""
