"""Catalog of runs and trace files: directory scans, file states, caches of traces and summaries."""
