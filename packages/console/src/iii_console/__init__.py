"""The page host of the embedded stack."""
