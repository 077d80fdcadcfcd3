"""Random views of a batch: geometry, colour, and what each kind of item allows."""
