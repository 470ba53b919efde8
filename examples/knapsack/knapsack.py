"""What to pack: the best choice of things that are not too heavy together, by branch and bound.

Usage: ciel run knapsack.py [things]

The tree of choices is searched by tasks that spawn tasks. A branch is cut off when even filling up
with parts of things, which no real choice can beat, would give less than the best one known to it.
What is known grows in rounds, so the answer and the work are the same on any number of cores.
"""

import random
from dataclasses import dataclass

import ciel

LEAVES_FROM = 21
"""Things left to decide on below which a task decides by itself."""


@dataclass(frozen=True)
class Thing:
    """Something that can be packed: `value` is what it is worth, `weight` what it weighs."""

    value: int
    weight: int


@dataclass(frozen=True)
class Branch:
    """A part of the tree: the things before `depth` are decided on."""

    depth: int
    value: int
    room: int


def bound(things: list[Thing], branch: Branch) -> float:
    """More than any choice in the branch can be worth; things are sorted by value per weight."""
    value, room = float(branch.value), branch.room
    for thing in things[branch.depth :]:
        if thing.weight > room:
            return value + thing.value * room / thing.weight
        value, room = value + thing.value, room - thing.weight
    return value


def children(things: list[Thing], branch: Branch) -> list[Branch]:
    """The two choices: to pack the next thing, if it fits, or to leave it."""
    thing, depth = things[branch.depth], branch.depth + 1
    left = Branch(depth, branch.value, branch.room)
    if thing.weight > branch.room:
        return [left]
    return [Branch(depth, branch.value + thing.value, branch.room - thing.weight), left]


def greedy(things: list[Thing], branch: Branch) -> int:
    """The value of one choice in the branch: whatever fits, best first."""
    value, room = branch.value, branch.room
    for thing in things[branch.depth :]:
        if thing.weight <= room:
            value, room = value + thing.value, room - thing.weight
    return value


def serial(things: list[Thing], branch: Branch, best: int) -> int:
    """The value of the best choice in the branch, or `best` if that is more."""
    if branch.depth == len(things):
        return max(best, branch.value)
    for child in children(things, branch):
        if bound(things, child) > best:
            best = serial(things, child, best)
    return best


@ciel.task
def search(things: list[Thing], branch: Branch, best: int) -> int:
    """As `serial`, with a task for each branch of two levels that is worth it."""
    if len(things) - branch.depth < LEAVES_FROM:
        return serial(things, branch, best)
    best = max(best, greedy(things, branch))
    level = [branch]
    for _ in range(2):
        level = [child for parent in level for child in children(things, parent)]
    worth = [child for child in level if bound(things, child) > best]
    found = [search.spawn(things, child, best) for child in worth]
    return max([best, *ciel.gather(*found)])


def things_to_pack(count: int) -> list[Thing]:
    """The same things every time, best value per weight first; values follow weights closely."""
    source = random.Random(count)
    weights = [source.randrange(40, 200) for _ in range(count)]
    things = [Thing(weight + source.randrange(1, 30), weight) for weight in weights]
    return sorted(things, key=lambda thing: thing.value / thing.weight, reverse=True)


def main(count: str = "40") -> dict[str, int]:
    """Packs half of the weight of all things."""
    things = things_to_pack(int(count))
    room = sum(thing.weight for thing in things) // 2
    best = search.spawn(things, Branch(0, 0, room), 0).result()
    return {"things": len(things), "room": room, "value": best}
