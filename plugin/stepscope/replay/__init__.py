"""Replay of a trace: the times of its steps if something took longer, less, or no time at all."""
