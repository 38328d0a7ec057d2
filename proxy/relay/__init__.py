"""The byte relay: listeners, the two halves of a connection, rewriting of request heads, its own answers."""
