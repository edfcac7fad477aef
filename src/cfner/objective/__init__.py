"""What a step of training minimises: named terms, composed; the causal effect is a wrapper around them."""
