"""Active experiments on a server, and the canary models whose answer is known in advance."""
