"""Clients generated from the exported schemas of harness and eval."""
