"""Whether an agent and a server work together: a model that cannot fail walks the unchanged agent through a known task.

What is learned of the agent becomes a plan, the plan a self-driving canary; the walk is what came of it, the verdict
names who broke which step.
"""
