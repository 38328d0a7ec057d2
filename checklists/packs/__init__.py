"""The report on a run of packs: tables and bars, as Markdown, one HTML page and JSON."""
