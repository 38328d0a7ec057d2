"""Plots of an experiment as SVG: on a page they take its colours, alone they bring their own."""
