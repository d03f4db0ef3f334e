"""TOML files of users, with places for complaints."""
