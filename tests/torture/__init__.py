"""Crashes, kills, faults, fuzzing and sharing: ``python -m torture`` in the folder tests does them at length and counts.

Each part is a generator of :class:`~torture.table.Result`. The tests call the same parts with a small scale.
"""
