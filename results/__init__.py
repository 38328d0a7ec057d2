"""What a run leaves behind: record types, the journal, outcomes, statistics. No network, no stack knowledge."""
