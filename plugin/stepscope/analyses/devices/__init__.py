"""Device work: kernels, copies, their launches, and the utilization of devices."""
