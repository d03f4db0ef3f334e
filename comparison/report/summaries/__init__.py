"""What a result says in sums: figures, repeats, and what changes cost."""
