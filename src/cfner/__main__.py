"""``python -m cfner``, where the command is not on the path."""

from cfner.cli.main import main

if __name__ == "__main__":
    main()
