"""Versioned V1 contracts of the iii-python workers: every wire shape, declared once.

A function or trigger type is one `FunctionSpec` or `TriggerSpec`; registration, validation, schema export and
contract tests all read that declaration. Modules of models do without `from __future__ import annotations` where they
can: pydantic would evaluate each annotation from its text, which is a fifth of what importing the models costs.
"""
