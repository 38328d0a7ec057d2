"""The viewer: a local web page over recorded runs. Nothing here sends a request; a recording is untrusted input."""
