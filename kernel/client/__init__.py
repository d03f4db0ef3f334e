"""A client of a cluster of brokers: connections, metadata, reads, and an idempotent producer."""
