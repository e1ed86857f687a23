"""`python -m iii_eval`: the worker as a process."""

from __future__ import annotations

from iii_eval.cli import main

if __name__ == "__main__":
    main()
