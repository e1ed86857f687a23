"""Versioned V1 contracts of the iii-python workers: every wire shape, declared once.

A function or trigger type is one `FunctionSpec` or `TriggerSpec`; registration, validation, schema export and
contract tests all read that declaration.
"""
