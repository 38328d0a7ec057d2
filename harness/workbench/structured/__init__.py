"""The pack `structured`, made from a seed and frozen with its hash (`python -m harness.workbench.structured`)."""
