"""Mutated traces through the compiled scanner under AddressSanitizer, and the whole product."""
