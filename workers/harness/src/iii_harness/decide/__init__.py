"""The pure core of the loop: plain data in, plain data out, nothing awaited (design: a pure core in a shell)."""
