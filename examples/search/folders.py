"""Lists the folders in a folder as JSON, in the order of their names.

Usage: folders.py ROOT FOLDER, where FOLDER is a path below ROOT. Links are not followed. It does
not know what is searched for. Read next: search.sw.
"""

import json
import os
import sys


def main() -> None:
    root, folder = sys.argv[1:]
    with os.scandir(os.path.join(root, folder)) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    print(json.dumps([name for name in names if _is_text(name)]))


def _is_text(name: str) -> bool:
    """Whether a name can be written as JSON; the others are mentioned and left out."""
    try:
        name.encode()
    except UnicodeEncodeError:
        print(f"left out, its name is not UTF-8: {name!r}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    main()
