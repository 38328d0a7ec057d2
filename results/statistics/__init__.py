"""Statistics of agent tasks: pure functions of episodes. `docs/statistics.md` gives every formula with its source."""
