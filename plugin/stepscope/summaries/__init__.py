"""Summaries of traces, which remain when events are released and suffice for all views of a run.

A `Summary` is made when a file is read (`summary.summarise`); a run's advice, ranks, trend and
comparison are computed from its summaries. Thus a run of a thousand traces needs memory only for
its summaries, and with stored summaries its traces are not read again.
"""
