"""Files and folders, and text made safe to show. It knows nothing of named entities."""
