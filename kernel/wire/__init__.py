"""The one edge to the Kafka protocol: framing, the version table, kio's codecs, and errors."""
