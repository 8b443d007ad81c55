"""The families of foreign models, a file each: `read_text` makes a `BaseText` from the files of a tokenizer. Layer 1.

A problem with the files is a ValueError or a DataError; the caller names the folder.
"""
