#!/bin/sh
# Prints the lines with WORD of the files in FOLDER, a path below ROOT, as `path:line:text`. It does
# not go into folders below; files that are not text are passed over.
# Usage: matches.sh ROOT FOLDER WORD
set -eu
export LC_ALL=C
root=$1
folder=$2
word=$3
cd -- "$root"
# A search that finds nothing ends with status 1, which is no failure here.
find "$folder" -maxdepth 1 -type f -print0 | sed -z 's|^\./||' | sort -z |
    xargs -0 -r sh -c 'grep -HnIF -e "$0" -- "$@" || test $? -eq 1' "$word"
