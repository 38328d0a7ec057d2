"""One module per call format. Each defines FORMAT (or FORMATS); nothing else has to know about a new one."""
