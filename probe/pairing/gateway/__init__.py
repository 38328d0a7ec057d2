"""What stands between agent and server: started between two relays, and told by the difference of its two sides."""
