"""Test support shared by all packages: worlds under control, buses, stacks."""
