"""Serve a model: an HTTP interface and a page. Nothing in here can train."""
