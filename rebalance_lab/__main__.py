"""`python -m rebalance_lab`, and the console script `rebalance-lab`."""

from __future__ import annotations

from comparison.cli.entry import main

if __name__ == "__main__":
    main()
