"""What an analysis found, as values: pipeline, report, sweep and commands import it, and it knows none of them."""
