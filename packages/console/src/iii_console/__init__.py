"""The page host of the embedded stack, and the chat page that it serves (siblings 15.3)."""
