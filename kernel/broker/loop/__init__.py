"""The event loop: what is ready, how long a turn may take and did take, when garbage is collected."""
