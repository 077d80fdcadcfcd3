"""Whole jobs: settings and data in, a result out. Every door (command, Python) calls these.

A job takes what a person gives (paths, names, numbers), tells a `Monitor` what happens, and
returns a frozen result. It prints nothing, and exits nowhere.
"""
