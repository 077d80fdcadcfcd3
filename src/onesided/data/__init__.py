"""From raw files to batches: Samples, PUSplit, PUBatch."""
