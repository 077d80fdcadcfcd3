"""Names of the files of a model. Imports no torch."""

WEIGHTS, DESCRIPTION, REFERENCE = "model.safetensors", "model.json", "reference.npz"
