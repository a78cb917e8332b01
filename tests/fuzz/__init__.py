"""Mutated traces through the compiled scanner under AddressSanitizer: `make fuzz`."""
