"""Memory of torch's allocators: levels, owners, growth and fragmentation."""
