"""Collectives of one rank, and of all ranks together."""
