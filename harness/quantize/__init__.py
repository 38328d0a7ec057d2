"""Quantised models made here: the same weights at several widths, each with command, hash and measured size."""
