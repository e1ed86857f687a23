"""Embedded siblings of the workers: session store, model router, providers."""
