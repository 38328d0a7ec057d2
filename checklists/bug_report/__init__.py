"""A bug report on one recorded exchange, for whoever is at fault: facts, redaction, and their text in Markdown."""

from checklists.bug_report.case import Case, Smaller
from checklists.bug_report.destination import Destination, destination_of
from checklists.bug_report.page import Report, report_of

__all__ = ["Case", "Destination", "Report", "Smaller", "destination_of", "report_of"]
