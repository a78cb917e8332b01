"""Answers about one trace, one a file: a frozen result and one function, drawing nothing.

Thresholds belong to rules; words for people belong to `render` and the page.
"""
