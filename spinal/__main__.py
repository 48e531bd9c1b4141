"""``python -m spinal``: the same as the command ``spinal``."""

from spinal.commands.app import main

if __name__ == "__main__":
    main()
