"""`ciel.sh` and `ciel.spawn_exec` with real commands."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ciel
import pytest


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ciel.Session]:
    """One session for all tests of this file."""
    with ciel.Session(jobs=2, state=tmp_path_factory.mktemp("state")) as made:
        yield made


def test_what_a_command_prints_is_its_result(session: ciel.Session) -> None:
    assert session.sh("echo {word}; echo two", word="one").result() == b"one\ntwo\n"


def test_future_stands_for_the_path_of_its_file(session: ciel.Session) -> None:
    source = session.sh("printf 'b\\na\\n'")
    assert session.sh("sort {source} > {out}", source=source).result() == b"a\nb\n"


def test_options_of_equal_calls_are_those_of_each(session: ciel.Session) -> None:
    many = [session.sh("echo $$", pure=False, retries=1) for _ in range(2)]
    assert many[0].result() != many[1].result()
    with pytest.raises(TypeError):
        session.sh("true", pure=0)
    with pytest.raises(TypeError):
        session.sh("true", pure=False, retries=True)
    with pytest.raises(ValueError, match="keep=True and pure=False"):
        session.sh("true", pure=False, keep=True)


def test_named_outputs_come_in_a_dictionary(session: ciel.Session) -> None:
    made = session.sh("echo l > {out.left}; echo r > {out.right}", outputs=["left", "right"])
    assert isinstance(made, dict)
    assert {name: future.result() for name, future in made.items()} == {
        "left": b"l\n",
        "right": b"r\n",
    }


@pytest.mark.parametrize(
    "value", ["'; rm -rf /tmp/x; '", "$(id)", "`id`", '"', "a b\nc", "*", "{out}", "\\", ""]
)
def test_value_cannot_break_out_of_its_place(session: ciel.Session, value: str) -> None:
    assert session.sh("printf %s {value}", value=value).result() == value.encode()
    assert session.sh('printf %s "<{value}>"', value=value).result() == f"<{value}>".encode()


def test_bytes_text_and_lists_come_on_standard_input(session: ciel.Session) -> None:
    piece = session.sh("echo three")
    assert session.sh("cat", stdin=[b"one\n", "two\n", piece]).result() == b"one\ntwo\nthree\n"


def test_bytes_as_an_input_are_a_file(session: ciel.Session) -> None:
    assert session.sh("wc -c < {data}", data=b"12345").result().split() == [b"5"]


def test_variables_and_folder_are_those_asked_for(session: ciel.Session, tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    found = session.sh('ls; echo "$LEVEL"', env={"LEVEL": 3}, cwd=tmp_path).result()
    assert found == b"here\n3\n"


def test_command_that_fails_raises_with_its_status(session: ciel.Session) -> None:
    with pytest.raises(ciel.TaskError) as caught:
        session.sh("echo no room >&2; exit 3").result()
    assert "exit status 3" in str(caught.value) and "no room" in str(caught.value)


def test_failed_command_says_what_it_was_given_and_what_it_left(session: ciel.Session) -> None:
    """The message had `echo "${ciel_0}"`, so nobody could see which of many commands had failed;
    exit status and standard error were parts of a text only.
    """
    source = session.sh("printf 'b\\na\\n'")
    command = "echo half; sort {source}; echo bad {n} >&2; exit {n}"
    with pytest.raises(ciel.CommandError) as caught:
        session.sh(command, source=source, n=7).result()
    error = caught.value
    assert isinstance(error, ciel.TaskError)
    assert (error.exit_status, error.signal, error.command) == (7, "", command)
    assert error.inputs == {"source": '"b\\na\\n"', "n": "7"}
    assert (error.stdout, error.stderr) == ("half\na\nb\n", "bad 7\n")
    assert "ended with exit status 7, with " in str(error) and "n = 7" in str(error)
    assert command in str(error)


def test_text_of_a_failed_command_is_what_happened_to_it(session: ciel.Session) -> None:
    """It began with `TaskError:`, which is not the name of the exception."""
    with pytest.raises(ciel.CommandError, match=r"^`sh -c exit 3` ended with exit status 3"):
        session.sh("exit 3").result()


def test_failed_command_keeps_its_attributes_through_tasks(session: ciel.Session) -> None:
    def inner() -> bytes:
        return ciel.sh("kill -TERM $$").result()

    with pytest.raises(ciel.CommandError) as caught:
        session.submit(inner).result()
    assert (caught.value.exit_status, caught.value.signal) == (None, "SIGTERM")


def test_failed_command_shows_ends_of_what_is_long(session: ciel.Session) -> None:
    with pytest.raises(ciel.CommandError) as caught:
        session.sh("seq 100000; seq 2000 >&2; test {n} = short", n="9" * 1000).result()
    error = caught.value
    assert error.stdout.endswith("\n100000\n") and len(error.stdout) == 4096
    assert error.stderr.endswith("\n2000\n") and len(error.stderr) == 4096
    assert len(error.inputs["n"]) < 50


def test_folder_that_is_not_there_is_told(session: ciel.Session, tmp_path: Path) -> None:
    with pytest.raises(ciel.CielError, match="nowhere"):
        session.sh("true", cwd=tmp_path / "nowhere").result()


def test_python_object_is_no_file(session: ciel.Session) -> None:
    made = session.submit(lambda: {"a": 1})
    with pytest.raises(ciel.Refused, match="Python object"):
        session.sh("cat {made}", made=made).result()


def test_text_of_a_task_is_a_file(session: ciel.Session) -> None:
    made = session.submit(lambda: "grüße\n")
    assert session.sh("cat {made}", made=made).result().decode() == "grüße\n"


@pytest.mark.parametrize(
    ("command", "given", "message"),
    [
        ("cat {nothing}", {}, "{nothing}"),
        ("echo > {out.left}; echo > {out.right}", {}, "{out.left}"),
        ("echo > {out.left}", {"outputs": ["right"]}, "{out.left}"),
    ],
)
def test_wrong_names_are_told_at_once(
    session: ciel.Session, command: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ciel.CielError) as caught:
        session.sh(command, **given)
    assert message in str(caught.value) and "hint:" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"outputs": "ab"}, TypeError, "outputs is a list of names, not 'ab'"),
        ({"outputs": ["a", "b", "a"]}, ValueError, "the output 'a' is declared twice"),
        ({"options": 3}, TypeError, "options must be ciel.Options, not int"),
    ],
)
def test_wrong_kinds_of_outputs_and_options_are_told_at_once(
    session: ciel.Session, given: dict[str, Any], kind: type[Exception], message: str
) -> None:
    """A text was a list of its letters, an output that was there twice was missing when the command
    had ended, and a number as options had no attribute `changed`."""
    with pytest.raises(kind, match=message):
        session.sh("true", **given)


def test_options_of_a_command_are_passed_by_name(session: ciel.Session) -> None:
    """`sh("sleep 10", timeout=0.5)` took the option for an unused input, and ran ten seconds."""
    with pytest.raises(ciel.Timeout):
        session.sh("exec sleep 600", timeout=0.2).result()


def test_retries_by_name_repeat_a_command(session: ciel.Session, tmp_path: Path) -> None:
    command = "echo x >> {log}; [ $(wc -l < {log}) = 3 ] && echo done"
    assert session.sh(command, log=tmp_path / "log", retries=2).result() == b"done\n"


def test_option_by_name_goes_before_that_of_options(session: ciel.Session) -> None:
    general = ciel.Options(timeout=600)
    with pytest.raises(ciel.Timeout):
        session.sh("exec sleep 600", options=general, timeout=0.2).result()


def test_placeholder_with_the_name_of_an_option_is_an_input(session: ciel.Session) -> None:
    assert session.sh("echo {name} {in.cores}", name="Ann", cores="all").result() == b"Ann all\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"timout": 1}, "no option 'timout' hint: did you mean 'timeout'?"),
        ({"sourse": "a"}, "no option 'sourse' hint: did you mean 'source'?"),
        ({"speed": 1}, "no option 'speed' hint: options: conda, container, cores, cwd, env, keep,"),
        ({"version": "3"}, "no option 'version'"),
        ({"options": ciel.Options(version="3")}, "version stands for the code of a function"),
    ],
)
def test_word_that_is_neither_input_nor_option_is_refused(
    session: ciel.Session, given: dict[str, Any], message: str
) -> None:
    """A misspelt option was an input that the command does not use, and was ignored."""
    with pytest.raises(ciel.CielError) as caught:
        session.sh("cat {source}", source="x", **given)
    assert message in " ".join(str(caught.value).split())


def test_wrong_value_of_an_option_is_refused_at_once(session: ciel.Session) -> None:
    with pytest.raises(ValueError, match="timeout must be above 0"):
        session.sh("true", timeout=-1)


def test_values_that_are_no_words_are_refused(session: ciel.Session) -> None:
    for value in ({"a": 1}, [["a"]], [None], None):
        with pytest.raises(TypeError, match="number for a command, or a list of these, not"):
            session.sh("echo {x}", x=value)
    with pytest.raises(TypeError, match="LEVEL must be"):
        session.sh("true", env={"LEVEL": [1]})
    with pytest.raises(TypeError, match="stdin must be"):
        session.sh("cat", stdin=3)


def test_braces_of_the_shell_stay(session: ciel.Session) -> None:
    found = session.sh("X=5; echo ${X} {{x}} | awk '{ print $1, $2 }'").result()
    assert found == b"5 {x}\n"


def test_doubled_braces_of_a_variable_are_those_of_the_shell(session: ciel.Session) -> None:
    """`${{X}}` was refused as an undefined placeholder, with the advice to double the braces."""
    assert session.sh("X=5; echo ${{X}} ${X} {y}", y=6).result() == b"5 5 6\n"


def test_number_that_is_not_finite_is_its_text(session: ciel.Session) -> None:
    """The engine could not read the arguments, and the job failed, whatever `main` caught."""
    values = [float("nan"), float("inf"), [-float("inf"), 0.5]]
    made = [session.sh("echo {x}", x=value, env={"Y": values[0]}) for value in values]
    assert [one.result() for one in made] == [b"nan\n", b"inf\n", b"-inf 0.5\n"]


def test_number_that_json_lacks_is_refused_where_it_is_passed(session: ciel.Session) -> None:
    def asked() -> None:
        with pytest.raises(ciel.NotSerializable, match="arguments of shell"):
            ciel.spawn_exec("shell", {"command": "true", "inputs": {"x": float("nan")}})

    session.submit(asked).result()


def test_tasks_spawn_commands_and_read_them(session: ciel.Session) -> None:
    def count(words: list[str]) -> int:
        text = ciel.sh("printf '%s\\n' {first} {second}", first=words[0], second=words[1])
        return int(ciel.sh("wc -l < {text}", text=text).result())

    assert session.submit(count, ["a", "b"]).result() == 2


def test_other_executors_are_spawned_by_name(session: ciel.Session) -> None:
    def ordered() -> str:
        lines = ciel.put("b\na\n")
        arguments = {"command_line": ["sort"], "inputs": [lines]}
        made: bytes = ciel.spawn_exec("stdinout", arguments)[0].result()
        return made.decode()

    assert session.submit(ordered).result() == "a\nb\n"


def test_strict_command_fails_with_a_part_of_its_pipe(session: ciel.Session) -> None:
    """The failure of all but the last command of a pipe was lost."""
    assert session.sh("false | cat").result() == b""
    with pytest.raises(ciel.CommandError) as caught:
        session.sh("false | cat", shell="strict").result()
    assert caught.value.exit_status == 1 and caught.value.command == "false | cat"


def test_shell_of_a_run_is_that_of_its_commands() -> None:
    def main() -> bytes:
        assert ciel.sh("false | cat", shell="sh").result() == b""
        return ciel.sh("false | cat").result()

    with pytest.raises(ciel.CommandError):
        ciel.run(main, shell="strict")


@pytest.mark.parametrize("how", [ciel.run, ciel.Session])
def test_shell_that_is_none_is_refused_at_once(how: Any) -> None:
    with pytest.raises(ValueError, match="shell is 'sh' or 'strict', not 'zsh'"):
        how(shell="zsh") if how is ciel.Session else how(print, shell="zsh")


def test_command_with_an_unknown_shell_is_refused_at_once(session: ciel.Session) -> None:
    with pytest.raises(ValueError, match="shell is 'sh' or 'strict', not 'zsh'"):
        session.sh("true", shell="zsh")


def test_container_gets_the_command_and_its_variables(session: ciel.Session) -> None:
    clean = ["env", "-i", "PATH=/usr/bin:/bin"]
    for words in (clean, " ".join(clean)):
        made = session.sh(
            "cat {data}; echo $LEVEL {x} ${HOME-none}",
            data=b"1\n", x="a  b", env={"LEVEL": 2}, container=words,
        )  # fmt: skip
        assert made.result() == b"1\n2 a  b none\n"


def test_tools_are_true_or_names(session: ciel.Session) -> None:
    for given in (True, False, ["cat"], ("cat", "sort")):
        assert session.sh("echo a | cat", tools=given).result() == b"a\n"
    assert session.sh("echo {tools}", tools="saw").result() == b"saw\n"
    with pytest.raises(TypeError, match="tools is True or a list of programs, not 'cat'"):
        session.sh("cat", tools="cat")
    with pytest.raises(ciel.Refused, match="both"):
        session.sh("cat", tools=True, container="env").result()


def test_conda_environment_is_active(session: ciel.Session, tmp_path: Path) -> None:
    for folder in ("conda-meta", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\necho tool of $CONDA_PREFIX\n")
    (tmp_path / "bin" / "tool").chmod(0o755)
    found = session.sh("tool", conda=tmp_path, shell="strict").result()
    assert found == f"tool of {tmp_path}\n".encode()
    with pytest.raises(ciel.Refused, match="is not a Conda environment"):
        session.sh("true", conda=tmp_path / "nowhere").result()


def test_placeholder_named_as_an_argument_for_the_shell_is_an_input(session: ciel.Session) -> None:
    found = session.sh("echo {container} {in.shell}", container="ship", shell="sea").result()
    assert found == b"ship sea\n"


def test_list_of_futures_is_their_paths_each_quoted(session: ciel.Session) -> None:
    parts = [session.sh("echo {n}", n=n) for n in range(1, 4)]
    assert session.sh("cat {parts}", parts=parts).result() == b"1\n2\n3\n"
    assert session.sh("cat {in.parts}", parts=tuple(parts)).result() == b"1\n2\n3\n"
    words = ["a  b", Path("c"), 4, "$HOME; exit 3"]
    found = session.sh("printf '%s\\n' {words}", words=words).result()
    assert found == b"a  b\nc\n4\n$HOME; exit 3\n"
    assert session.sh("echo none {parts}", parts=[]).result() == b"none\n"


def test_failed_command_names_the_elements_of_its_lists(session: ciel.Session) -> None:
    with pytest.raises(ciel.CommandError) as caught:
        session.sh("cat {parts}; exit 3", parts=[session.sh("echo a"), 5]).result()
    assert caught.value.inputs == {"parts[0]": '"a\\n"', "parts[1]": "5"}


def test_path_of_an_output_ends_in_its_name(session: ciel.Session) -> None:
    """Programs that choose a format by the extension of a file could not write outputs."""
    path = session.sh("echo {out.bam} | tee {out.bam}").result().decode().strip()
    assert path.endswith("out.bam")
    made = session.sh(
        "echo {out.reads.bam} > {out.reads.bam}; echo {out.reads.bam.bai} > {out.reads.bam.bai}",
        outputs=["reads.bam", "reads.bam.bai"],
    )
    paths = [made[name].result().decode().strip() for name in ("reads.bam", "reads.bam.bai")]
    assert paths[0].endswith("reads.bam") and paths[1] == f"{paths[0]}.bai"
    plain = session.sh("echo {out} > {out}").result().decode().strip()
    assert plain.endswith("out")


def test_folder_as_an_output_is_refused_with_what_to_write(session: ciel.Session) -> None:
    with pytest.raises(ciel.TaskError, match="is a folder") as caught:
        session.sh("mkdir {out}").result()
    assert "{out/}" in str(caught.value)


def test_folder_that_a_command_writes_is_a_folder_for_another(session: ciel.Session) -> None:
    made = session.sh("mkdir {out/}/sub; echo one > {out/}/sub/a; echo two > {out/}/b")
    found = session.sh("cd {made/}; find . | sort; cat sub/a b", made=made).result()
    assert found == b".\n./b\n./sub\n./sub/a\none\ntwo\n"
    with tarfile.open(fileobj=io.BytesIO(made.result())) as archive:
        assert sorted(archive.getnames()) == ["b", "sub", "sub/a"]


def test_equal_folders_are_equal_results(session: ciel.Session) -> None:
    def wrote(order: str) -> bytes:
        command = (
            "for n in {order}; do echo $n > {out/}/$n; done; ln -s 1 {out/}/link; "
            "chmod +x {out/}/2; mkdir {out/}/empty; touch -d @{time} {out/}/1"
        )
        return session.sh(command.replace("{order}", order), time=len(order)).result()

    assert wrote("1 2 3") == wrote("3 2  1")


def test_what_a_folder_holds_comes_back_as_it_was(session: ciel.Session, tmp_path: Path) -> None:
    long = "n" * 200
    made = session.sh(
        "cd {out/}; ln -s target link; mkdir -p {long}/{long}/empty; "
        "head -c 300000 /dev/zero > zeros; echo 'echo runs' > run; chmod +x run",
        long=long,
    )
    found = session.sh(
        "cd {made/}; readlink link; ls {long}/{long}; wc -c < zeros; ./run; echo more > new",
        made=made, long=long,
    )  # fmt: skip
    assert found.result().split() == [b"target", b"empty", b"300000", b"runs"]


def test_several_folders_are_outputs_and_elements_of_a_list(session: ciel.Session) -> None:
    made = session.sh("echo 1 > {out.a/}/x; echo 2 > {out.b/}/x", outputs=["a", "b"])
    found = session.sh("for d in {folders/}; do cat $d/x; done", folders=[made["a"], made["b"]])
    assert found.result() == b"1\n2\n"


def test_input_that_is_no_archive_is_no_folder(session: ciel.Session) -> None:
    for data in (b"", b"no archive at all" * 100):
        with pytest.raises(ciel.TaskError, match='tar archive, and the input "data" is none'):
            session.sh("ls {data/}", data=data).result()
    with pytest.raises(ciel.Refused, match="the folder of a reference"):
        session.sh("ls {word/}", word="text").result()


def test_archive_cannot_write_outside_of_its_folder(session: ciel.Session, tmp_path: Path) -> None:
    """An input may come from anywhere, and name `../../file`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in (f"../../../../../../../../..{tmp_path}/out", f"{tmp_path}/absolute"):
            entry = tarfile.TarInfo(name)
            archive.addfile(entry, io.BytesIO())
    session.sh("ls {data/}", data=buffer.getvalue()).exception()
    assert list(tmp_path.iterdir()) == []
