"""Tasks of three languages that use each other's results."""

import ciel


@ciel.task
def lines(number: int) -> int:
    text = ciel.sh("set -e; seq {count} > {out}; sleep 0.02", count=1000 * number)
    sorted_text = ciel.sh("set -e; sort -rn {text} > {out}; sleep 0.01", text=text)
    count = int(sorted_text.result().split()[0])
    print("lines", number, count)
    return count


def square(number: int) -> int:
    return number * number


def main() -> int:
    counts = [lines.spawn(number) for number in range(1, 5)]
    squares = ciel.skywriting("squares.sw", 5)
    total = 0
    for count in counts:
        total += count.result()
        print("total", total)
    return total + sum(squares.result())
