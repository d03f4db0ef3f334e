"""The handlers of the broker's own APIs: data, topics, settings, the cluster."""
