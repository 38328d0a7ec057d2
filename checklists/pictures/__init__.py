"""Pictures of a report as inline SVG with a text alternative. Colours are CSS variables, so that dark follows light."""
