"""A run as it happens, for the terminal: exchanges as they end, counted, and drawn."""
