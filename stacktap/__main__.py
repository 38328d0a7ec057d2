"""`python -m stacktap` and the `stacktap` script."""

from stacktap.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
