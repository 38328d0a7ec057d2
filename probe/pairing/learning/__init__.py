"""How an unchanged agent runs a command and ends a task: learned from the requests it made, by schemas and prompts."""
