"""A self-contained page that shows what was found, what is doubtful, and why."""

from ddclust.show.report.inline import InlineReport
from ddclust.show.report.page import report_page

__all__ = ["InlineReport", "report_page"]
