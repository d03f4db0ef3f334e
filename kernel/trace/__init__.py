"""The event trace: what every process writes down while it runs, and the only thing the pipeline reads."""
