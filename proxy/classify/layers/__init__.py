"""One module per layer, in the order of a request's way: each says whether it stopped the exchange."""
