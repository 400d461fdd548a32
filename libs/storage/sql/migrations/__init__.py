"""The schema's history: one script for each revision, the same for SQLite and MySQL."""
