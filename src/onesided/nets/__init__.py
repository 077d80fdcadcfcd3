"""Networks: backbones that carry their preprocessing, heads, and the momentum target."""
