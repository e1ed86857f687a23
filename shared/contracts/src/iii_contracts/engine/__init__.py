"""Contracts of the functions and trigger types that the engine itself serves (engine spec 8, 12 to 16)."""
