"""Test support for every package: `tests/lib/iii_testing`."""

pytest_plugins = ["iii_testing.plugin"]
