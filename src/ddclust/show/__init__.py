"""Figures, explanations and the report."""
