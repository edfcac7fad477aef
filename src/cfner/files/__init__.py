"""Files, folders, and escaping of text for display. Knows nothing about named entities."""
