"""Grammars for constrained answers: one language, written as GBNF for llama.cpp and as a regular expression for MLX."""
