"""The pure core of the loop: plain data in, plain data out, nothing awaited (design, "pure core in a durable shell")."""
