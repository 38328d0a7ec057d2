"""The serving checklist: 22 questions about how a model was served, filled from what a run left behind."""
