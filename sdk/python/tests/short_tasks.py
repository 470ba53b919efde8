"""Tasks of jobs whose calls are short, most of them: some of these fail, leave, wait or take long.

Used by tests of what runs in place of a task.
"""

SHORT_TASKS = """
@ciel.task
def plain(x):
    return (x * 31 + 7) % 1009

@ciel.task
def fails(x):
    if x % 50 == 49:
        raise ValueError(f"bad {x}")
    return x + 1

@ciel.task
def leaves(x):
    if x % 60 == 59:
        raise SystemExit(x)
    return x

@ciel.task
def large(x):
    return str(x) * (3000 if x % 40 == 39 else 1)

@ciel.task
def lists(x):
    return [x, x]

@ciel.task
def long(x):
    end = x
    for number in range(60000 if x % 45 == 44 else 10):
        end = (end * 31 + number) % 1009
    return end

def deep(x):
    return 1 + deep(x - 1) if x > 0 else 0

@ciel.task
def dives(x):
    return deep(100000 if x % 55 == 54 else x % 50)

@ciel.task
def says(x):
    print("says", x)
    return x

@ciel.task
def spawns(x):
    return plain.spawn(x).result()
"""
