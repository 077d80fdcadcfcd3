"""Long attacks on the library, all run by `make campaigns`; the tests run a short part of each."""
