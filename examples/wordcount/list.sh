#!/bin/sh
# Lists the texts below FOLDER, one path per line, in the order of their bytes.
# Usage: list.sh FOLDER
set -eu
cd -- "$1"
find "$PWD" -type f -name '*.txt' | LC_ALL=C sort
