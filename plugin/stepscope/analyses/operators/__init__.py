"""Operators: their cost, their work, and what led to them."""
