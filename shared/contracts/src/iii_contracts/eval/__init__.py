"""Contracts of the eval worker, version 0.2.2-experimental; `declared` lists them all."""
