"""Reports of the small-model workbench: pure functions of a run, as Markdown, HTML and SVG."""
