"""A real agent's process: its scratch folder, bounded and guarded, and what it asks of a listener first."""
