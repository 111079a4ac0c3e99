"""`python -m kit` is the command `shardkit`."""

from kit.cli import main

if __name__ == "__main__":
    main()
