"""Collectives of one rank and of a whole job, and comparisons of its ranks."""
