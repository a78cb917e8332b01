"""Summaries of traces, which stay when events are released: enough for every question on a run.

A `Summary` is made when a file is read (`summary.summarise`); a run's advice, ranks, trend and
comparison are computed from its summaries. So a run of a thousand traces needs the memory of its
summaries only, and stored summaries save the reading.
"""
