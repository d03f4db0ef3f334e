"""The playground's page, and the server that gives it to one machine's browser."""
