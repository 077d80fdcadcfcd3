"""auto: candidates, cross-validated on the same folds, cheap ones first; the best one is kept."""
