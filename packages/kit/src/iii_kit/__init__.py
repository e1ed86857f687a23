"""What an iii worker is made of: bus protocols, the bus over `iii-sdk`, the world, errors, tracing, clients."""
