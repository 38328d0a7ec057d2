"""Agents x stacks x launch configurations: the file, the measuring, the results on disk, the pages."""
