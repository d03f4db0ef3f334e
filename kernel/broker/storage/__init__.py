"""A broker's storage: SQLite files with one writer each, fenced by epochs that successors publish."""
