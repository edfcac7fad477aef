"""From a corpus to a stream of steps: label numbers, slices of sentences, hashes. No torch here."""
