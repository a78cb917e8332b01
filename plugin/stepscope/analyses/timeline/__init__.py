"""The timeline: every event of a trace as slices in rows, with search, details and tiles."""
