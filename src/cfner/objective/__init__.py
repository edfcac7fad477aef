"""What a training step minimises: a sum of named terms. The causal effect is a wrapper around terms."""
