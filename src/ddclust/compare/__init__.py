"""DDC and the reference methods on the same data."""
