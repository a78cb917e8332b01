"""Operators: cost, arithmetic, kernels, stacks and modules."""
