"""Tables as they are: numbers with gaps, words, dates and texts, and how they become vectors."""

from ddclust.data.tables.columns import Columns
from ddclust.data.tables.guess import KINDS
from ddclust.data.tables.table import Table, mixed_table

__all__ = ["KINDS", "Columns", "Table", "mixed_table"]
