"""One file per named data set."""
