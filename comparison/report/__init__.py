"""Results for a terminal and an HTML page, and diagrams from traces. Reads files, never running code or Spark."""
