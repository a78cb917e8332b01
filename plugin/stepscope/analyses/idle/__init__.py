"""Why devices stood still, and what each step waited for."""
