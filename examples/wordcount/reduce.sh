#!/bin/sh
# Adds up lines `word count` with the same word.
set -eu
export LC_ALL=C
sort -k1,1 | awk '
    $1 != word {
        if (word != "") print word, count
        word = $1
        count = 0
    }
    { count += $2 }
    END { if (word != "") print word, count }'
