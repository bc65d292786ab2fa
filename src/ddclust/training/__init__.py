"""One run from its seed to its end, and all runs of a fit."""
