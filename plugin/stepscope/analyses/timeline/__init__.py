"""The timeline: every event of a recording as slices in rows, and what is asked of them."""
