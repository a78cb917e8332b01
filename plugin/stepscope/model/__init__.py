"""Traces in memory: frames, intervals, call trees, and the `Trace` that holds them."""
