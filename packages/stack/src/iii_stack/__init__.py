"""The embedded iii stack in one process, and its command line."""
