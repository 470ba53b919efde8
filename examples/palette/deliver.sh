#!/bin/sh
# Puts the one input file into FOLDER under NAME, whole or not at all: it is written beside its
# place under another name and then renamed. Tells the path as a JSON string.
# Usage: deliver.sh FOLDER NAME
set -eu
folder=$1
name=$2
mkdir -p -- "$folder"
unfinished=$(mktemp "$folder/.$name.XXXXXX")
trap 'rm -f -- "$unfinished"' EXIT
cat -- "$(cat -- "$INPUT_FILES")" > "$unfinished"
chmod 644 -- "$unfinished"
mv -f -- "$unfinished" "$folder/$name"
trap - EXIT
printf '%s' "$folder/$name" | sed 's/[\\"]/\\&/g; s/.*/"&"/' > "$(cat -- "$OUTPUT_FILES")"
