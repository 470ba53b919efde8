//! Output that is spilled to disk when the engine is killed.
//!
//! Read first: `support`.

use crate::support::{Live, Place, done, held, shell, shell_printing};

/// Bytes that a command prints behind one that is held: more than stays in memory.
const COMMAND_BYTES: usize = 20_000_000;

/// Lines of a script, likewise, and the bytes of one.
const LINES: usize = 300;
const LINE_BYTES: usize = 65_536;

fn script() -> String {
    let prints = format!(
        "head -c {COMMAND_BYTES} /dev/zero | tr '\\0' x; echo; {}",
        done("shell")
    );
    format!(
        "function lines() {{
             line = \"y\";
             for (i in range(16)) {{ line = line + line; }}
             for (i in range({LINES})) {{ print(line); }}
             return {};
         }}
         h = {};
         a = {};
         b = spawn(lines);
         print(\"end\");",
        shell(&done("lines")),
        shell_printing(&format!("{}; echo held", held("gate")), ""),
        shell_printing(&prints, ""),
    )
}

fn start(place: &Place) -> Live {
    place.start_script(&["-j2"], &script())
}

#[test]
fn output_that_waits_on_disk_when_the_engine_is_killed_comes_once() {
    let place = Place::new();
    let gate = place.gate("gate");
    for _ in 0..2 {
        let live = start(&place);
        place.await_file("shell");
        place.await_file("lines");
        assert_eq!(live.unread(), "");
        live.signal("KILL");
        assert_eq!(live.end().signal, Some(9));
    }
    std::fs::remove_file(place.path("shell")).unwrap();
    let live = start(&place);
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let expected = format!(
        "held\n{}\n{}end\n",
        "x".repeat(COMMAND_BYTES),
        format!("{}\n", "y".repeat(LINE_BYTES)).repeat(LINES)
    );
    assert_eq!(ended.stdout_bytes as usize, expected.len());
    // What is kept of it is its beginning.
    assert!(expected.starts_with(&ended.stdout) && ended.stdout.len() > COMMAND_BYTES);
    assert!(expected.ends_with(&ended.stdout_end));
    place.expect_nobody(&ended.stderr);
}
