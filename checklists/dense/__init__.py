"""The report on an experiment on items (`stacktap dense report`): Markdown, HTML and JSON, and its plots."""
