"""Generated runs whose figures are known."""
