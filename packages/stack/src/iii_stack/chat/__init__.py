"""Talking to an agent from a terminal."""
