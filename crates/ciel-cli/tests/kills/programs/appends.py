"""Tasks that append to two ordered files and print, in a tree whose order is known."""

import ciel


@ciel.task
def branch(depth, place, first):
    """Appends before, between and after its children."""
    second = ciel.open("second", "serial-append")
    first.write(f"{place} begins\n")
    print(place)
    if depth == 0:
        ciel.sh("sleep 0.00{n}", n=2 * (place % 5)).result()
        second.write(f"leaf {place}, ")
        return 1
    children = [branch.spawn(depth - 1, 2 * place + side, first) for side in (0, 1)]
    first.write(f"{place} goes on")
    second.write(b"node\n")
    total = sum(child.result() for child in children)
    first.write(f", and ends with {total}\n")
    return total


def main():
    """The tree; both files in the folder of the run."""
    with ciel.open("first", "serial-append") as first:
        first.write("root\n")
        return branch.spawn(5, 1, first).result()
