"""What scenarios and reports know of each design besides its row in `kernel.designs`: a module each, one table."""
