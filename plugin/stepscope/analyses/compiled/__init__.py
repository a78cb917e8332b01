"""Regions and Triton kernels of torch.compile, and recorded (CUDA, HIP) graphs."""
