"""Spawns in loops, waits inside of waits, a tail that repeats itself, values of many sizes."""

import ciel


@ciel.task
def block(number: int) -> bytes:
    print("block", number)
    return bytes([number]) * (700 * number * number)


@ciel.task
def longest(numbers: list[int]) -> int:
    best = 0
    for number in numbers:
        best = max(best, len(block.spawn(number).result()))
        print("best", best)
    return best


@ciel.task
def counted(left: int, total: int) -> int:
    if left == 0:
        return total
    print("left", left)
    part = longest.spawn([left % 5, left % 3])
    return counted.tail(left - 1, total + part.result())


def main() -> int:
    counts = [counted.spawn(left, 0) for left in range(3, 7)]
    total = 0
    for count in ciel.map(longest, [[number, number + 1] for number in range(6)], window=2):
        total += count
        print("total", total)
    return total + sum(ciel.gather(counts))
