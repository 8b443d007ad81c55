"""`python -m graftmt` is `graftmt`."""

from graftmt.cli.app import main

if __name__ == "__main__":
    main()
