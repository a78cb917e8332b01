"""What torch's allocators held, for whom, and whether it grows."""
