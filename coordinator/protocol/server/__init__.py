"""The requests and znodes of the `server` design."""
