"""Counts the words of all texts below a folder by map and reduce, with shell tools only.

Usage: ciel run wordcount.py [folder]

The same work as wordcount.sw: commands are tasks, their outputs are futures, and a future in a
command stands for the path of its file.
"""

from pathlib import Path

import ciel

SHOWN = 10
PARTS = ["first", "middle", "last"]

COUNT = """
touch {out.first} {out.middle} {out.last}
tr -cs A-Za-z '\\n' < {text} | tr A-Z a-z | grep . | LC_ALL=C sort | uniq -c |
    awk -v first={out.first} -v middle={out.middle} -v last={out.last} '
        { print $2, $1 > ($2 < "i" ? first : $2 < "q" ? middle : last) }'
"""

ADD = "awk '{ count[$1] += $2 } END { for (word in count) print word, count[word] }'"

COUNTING = ciel.Options(name="count")


def main(folder: str = "") -> dict[str, int]:
    """Prints the most frequent words; gives how many there are."""
    texts = sorted(Path(folder or Path(__file__).parent / "texts").rglob("*.txt"))
    counted = [ciel.sh(COUNT, text=text, outputs=PARTS, options=COUNTING) for text in texts]
    added = [ciel.sh(ADD, stdin=[counts[part] for counts in counted]) for part in PARTS]
    ranked = ciel.sh("LC_ALL=C sort -k2,2nr -k1,1", stdin=added).result().decode()
    pairs = [line.split() for line in ranked.splitlines()]
    for word, count in pairs[:SHOWN]:
        print(count, word)
    words = sum(int(count) for _, count in pairs)
    return {"texts": len(texts), "words": words, "different": len(pairs)}
