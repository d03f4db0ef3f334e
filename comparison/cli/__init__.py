"""The command line: `main` puts it together, one module a group of commands."""
