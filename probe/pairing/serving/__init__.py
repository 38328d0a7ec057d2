"""The server of a pairing: started with the canary, the user's own, or an Ollama that gets the canary."""
