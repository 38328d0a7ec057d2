"""A run in the formats of other tools: written from the record alone, one exchange at a time, in bounded memory."""
