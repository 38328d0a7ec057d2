"""Agent profiles: one TOML file each; the fields are those of `proxy.agents.profile`."""
