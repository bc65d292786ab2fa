"""Benchmarks: a module each, whose ``figures()`` gives what it measures, or None without the data that it needs."""
