"""Compiled loops for what numpy and torch have no operation for; numba is loaded with them."""
