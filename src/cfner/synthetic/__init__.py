"""The generated corpus of the demo."""
