"""What is kept of a recording when its events are let go: enough for all that is asked of a run.

A `Summary` is made where a file is read (`summary.summarise`), and a run's are put together where
they are asked for: advice on the run, its ranks beside each other, its trend, what changed. So a
run of a thousand recordings needs the memory of its summaries, and what was read once need not be
read again.
"""
