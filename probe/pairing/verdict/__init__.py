"""The verdict on a recorded walk: each exchange beside what the canary wrote, each step by what the agent did. Pure."""
