"""torch.compile's regions and Triton kernels, and recorded graphs."""
