"""Agents and clients: how they are pointed at the relay and run."""
