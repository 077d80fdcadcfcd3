"""Extremely randomised trees for P and U: arrays in, arrays out.

`impurity` is the paper's risk of a node, `grow` builds one tree, `forest` many of them. The
first two are compiled and take a second to import, so `forest` imports them when it is used.
"""
