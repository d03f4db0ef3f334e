"""The command line: `main` has the table of commands, and each group of commands has a module."""
