"""The transparent recording relay, in-process upstreams, tags, redaction, replay and the classifier."""
