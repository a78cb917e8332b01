"""SQL queries over the public tables: one read-only statement, run by DuckDB in its own process."""
