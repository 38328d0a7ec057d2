"""Packs: single-request tasks with checkers, and what an answer is worth by them.

`loading` reads a pack from disk, `model` says what it is, `scoring` judges an answer. Evaluation does no I/O.
"""
