"""BFCL v4 multi-turn, its file-system items: loaded from the wheel `bfcl-eval` that the user fetches, never copied."""
