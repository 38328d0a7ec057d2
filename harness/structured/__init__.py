"""Structured answers: three layers of judging, two tiers of reading, and the scaffolds that may help a small model."""
