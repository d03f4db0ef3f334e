"""What commands print: tables, counts, progress."""
