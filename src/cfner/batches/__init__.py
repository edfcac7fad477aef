"""From words to tensors: subwords, windows for long sentences, and batches of similar length."""
