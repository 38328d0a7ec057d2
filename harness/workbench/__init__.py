"""The small-model workbench: what quantization does to structured answers, and which scaffold repairs it."""
