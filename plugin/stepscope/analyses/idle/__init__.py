"""Causes of idle devices, and the critical path of each step."""
