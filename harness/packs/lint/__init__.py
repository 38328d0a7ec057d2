"""The pack linter: each check is tried on answers that should pass and should fail, given in the pack or generated."""
