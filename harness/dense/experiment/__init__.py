"""An experiment on items as numbers: what a report is made of, from the run folder alone."""
