"""The whole story in minutes on two CPU cores, on text made from CLDR. Layer 7."""
