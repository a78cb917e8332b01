"""The host: Python, modules, stacks, and where its threads' time went."""
