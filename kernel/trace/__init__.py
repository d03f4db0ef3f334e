"""The event trace: every process records one while it runs, and the pipeline reads nothing else."""
