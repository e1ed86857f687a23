"""`python -m iii_harness`: the worker as a process."""

from __future__ import annotations

from iii_harness.cli import main

if __name__ == "__main__":
    main()
