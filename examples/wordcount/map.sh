#!/bin/sh
# Counts the words of one text: lines `word count`, dealt out to the output files by first letter.
set -eu
export LC_ALL=C
tr -cs 'A-Za-z' '\n' < "$(cat -- "$INPUT_FILES")" | tr 'A-Z' 'a-z' | sort | uniq -c | awk '
    BEGIN {
        while ((getline file < ENVIRON["OUTPUT_FILES"]) > 0) {
            outputs[parts++] = file
            printf "" > file
        }
    }
    $2 != "" {
        letter = index("abcdefghijklmnopqrstuvwxyz", substr($2, 1, 1))
        print $2, $1 > outputs[letter % parts]
    }'
