"""`python -m rebalance_lab`, and the console script `rebalance-lab`."""

# No other module is imported before the folder is dropped, not even `__future__`.
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # The working folder, which `-m` puts first: what a user has there is not ours to run (`interpreter.py`).
    del sys.path[0]

from comparison.cli.entry import main

if __name__ == "__main__":
    main()
