"""The tagger's network: an encoder, a head that grows, and the folder in which models live."""
