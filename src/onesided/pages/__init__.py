"""What every page is made of: one template environment, one policy, one set of style tokens."""
