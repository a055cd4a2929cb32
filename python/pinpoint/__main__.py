"""The ``pinpoint`` command, which wheels bring along."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def command() -> str:
    """The program: the one in this package, or else the one on the path."""
    name = "pinpoint.exe" if os.name == "nt" else "pinpoint"
    bundled = Path(__file__).parent / "bin" / name
    if bundled.is_file():
        return str(bundled)
    # This very script is called like the command and may come first on the path.
    own = {os.path.dirname(os.path.abspath(sys.argv[0])), os.path.dirname(sys.executable)}
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f not in own]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        sys.exit(
            "error: this installation has no `pinpoint` command\n"
            "hint: install a wheel made by `python/build-wheel`, or run `cargo install --path .`"
        )
    return found


def main() -> None:
    """Runs the command with the arguments of this process."""
    program = command()
    if os.name == "nt":
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
