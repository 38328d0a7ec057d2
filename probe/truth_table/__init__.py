"""The truth table: what real servers did with texts that their model is known to have written.

One row for each stack, launch configuration, canary member, and plain or streamed answer. ``python -m
probe.truth_table`` starts the servers, asks through the recording relay and writes the table; the configurations are
data in ``probe.truth_table.configurations``.
"""
