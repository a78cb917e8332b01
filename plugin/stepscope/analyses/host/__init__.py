"""The host: Python, modules, stacks, and its threads' time."""
