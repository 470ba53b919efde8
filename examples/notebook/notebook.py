"""A session as one has it in a notebook: cells that submit work and look at what came of it.

Usage: python notebook.py

Functions are defined where they are needed, without a file of their own and without a guard. Each
submit is a job of its own; the session keeps its workers until it is closed.
"""

# %% Begin
import ciel

session = ciel.Session()


# %% A function, defined and tried
@ciel.task
def collatz(start: int) -> int:
    """Steps that a number takes to come down to one."""
    steps, number = 0, start
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


print("27 takes", session.submit(collatz, 27).result(), "steps")


# %% Tasks that spawn tasks: the longest way below a limit, in pieces
@ciel.task
def longest(first: int, limit: int) -> tuple[int, int]:
    """The number from `first` to below `limit` that takes most steps, with its steps."""
    if limit - first > 5000:
        middle = (first + limit) // 2
        halves = [longest.spawn(first, middle), longest.spawn(middle, limit)]
        return max(ciel.gather(*halves), key=lambda found: (found[1], -found[0]))
    found = [(number, collatz(number)) for number in range(first, limit)]
    return max(found, key=lambda pair: (pair[1], -pair[0]))


submitted = [session.submit(longest, 1, limit) for limit in (1_000, 10_000, 30_000)]

# %% Look
for future in submitted:
    number, steps = future.result()
    print(number, "takes", steps, "steps")

# %% End
session.close()
