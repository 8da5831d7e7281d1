"""The command line: ``python -m wherefore``, and ``wherefore`` where the package is installed."""

from __future__ import annotations

import signal
import sys

from . import _wherefore


def main() -> int:
    # Ctrl-C ends the command as it ends every other
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _wherefore.command(sys.executable, ["wherefore", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
