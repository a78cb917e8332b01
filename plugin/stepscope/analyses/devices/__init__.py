"""Devices: what ran on them, how it was launched, and how well it used them."""
