"""Reports: one document made of the facts, written as Markdown, as one HTML page, and as JSON."""
