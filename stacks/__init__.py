"""One module per serving stack, plus the wire dialects, call formats and signatures. Never decides outcomes."""
