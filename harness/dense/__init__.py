"""Agent tasks judged by the state that they leave behind (Dense Bench): items of several user messages, their oracle,
and what a failed run failed by. Two sources behind one interface: our own file-system tasks, and BFCL's."""
