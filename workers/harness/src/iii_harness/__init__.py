"""The iii worker harness: a thin, durable turn loop that makes an agent of a model and a few workers."""
