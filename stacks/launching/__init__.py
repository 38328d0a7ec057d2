"""Installing and starting the real servers: one recipe for each stack, and what runs them."""
