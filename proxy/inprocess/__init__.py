"""A model in this process behind the OpenAI chat surface."""
