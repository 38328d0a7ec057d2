"""Tables of statistics as text and as data, and the published values that a replication is laid beside."""
