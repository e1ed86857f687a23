"""The commands of `iii-stack`, one module each."""
