"""The replay's page: its template, its controls, and what it does with the playground's modules."""
