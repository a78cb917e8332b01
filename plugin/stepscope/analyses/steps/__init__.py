"""Steps: the breakdown of their time, and statistics of their durations."""
