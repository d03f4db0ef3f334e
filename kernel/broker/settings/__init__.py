"""Settings of brokers and topics: names, defaults, checks, and which value holds. Pure."""
