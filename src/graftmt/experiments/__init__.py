"""The paper's experiments as data. Layer 7."""
