"""From what the relay tells to journal lines: pairing, framing, redaction, the writer thread."""
