"""Agent tasks under controlled serving conditions: worlds, tasks, conditions, the agent loop, grids.

Everything is sent through the recording relay; tools run on worlds in memory; nothing that a model writes is executed.
"""
