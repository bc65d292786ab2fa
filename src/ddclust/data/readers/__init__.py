"""One file per kind of data that can be read from disk."""
