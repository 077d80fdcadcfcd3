"""Losses as pure functions: tensors and numbers in, tensors out; no state, no settings.

Each module opens with the symbols of its formulas. The slow, obvious version of every
formula is in the test of the same name.
"""
