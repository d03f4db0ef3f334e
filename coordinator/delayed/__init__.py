"""The `delayed` design: what a lost member had waits for its return (Connect's protocol, KIP-415, for consumers)."""
