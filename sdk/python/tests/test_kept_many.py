"""Results of hundreds of short tasks, which are kept together: a later run takes all of them."""

from pathlib import Path

from test_kept import edit, run

JOB = """
import ciel

POWER = 2


@ciel.task
def power(number: int) -> int:
    if number < 0:
        print("so no call runs early in place of `main`")
    return number**POWER


def main() -> int:
    powers = [power.spawn(number) for number in range(500)]
    return sum(future.result() for future in powers)
"""

SQUARES = sum(number**2 for number in range(500))
CUBES = sum(number**3 for number in range(500))


def test_hundreds_of_short_tasks_are_taken_by_the_next_run_until_they_change(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    for told in ["", "500 of 500 kept", "500 of 500 kept"]:
        _, printed, said = run(tmp_path, *(["--kept"] if told else []))
        assert printed == f"{SQUARES}\n"
        assert told in said
    edit(tmp_path / "job.py", "POWER = 2", "POWER = 3")
    _, printed, said = run(tmp_path, "--kept")
    assert printed == f"{CUBES}\n"
    assert "0 of 500 kept; power: code changed: job.py:4 (500 tasks)" in said
    edit(tmp_path / "job.py", "POWER = 3", "POWER = 2")
    _, printed, said = run(tmp_path, "--kept")
    assert printed == f"{SQUARES}\n"
    assert "500 of 500 kept" in said
