"""What is known of each serving stack's running server: how to recognise it, what it tells, how to ask it.

One module per stack; no module here does I/O. A stack says which requests to send by yielding `Ask`s from a generator
and is sent an `Answer` for each (`base.Steps`); `probe.asking` sends them through the relay.
"""
