//! Named pipes held at both ends, between real processes.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use ciel_data_plane::{Fifo, Stop, discard, push, store};

use crate::wiring::growing;

fn shell(script: &str, fifo: &Fifo) -> std::process::Child {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(fifo.path());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn fifo(folder: &tempfile::TempDir) -> Fifo {
    Fifo::create(&folder.path().join("out")).unwrap()
}

#[test]
fn processes_stream_through_a_held_pipe_and_the_end_is_the_engines_word() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(&folder);
    let consumer = shell("wc -c < \"$1\"", &fifo);
    let mut producer = shell("head -c 3000000 /dev/zero > \"$1\"", &fifo);
    assert!(producer.wait().unwrap().success());
    assert!(fifo.end(&Stop::new().unwrap()).unwrap());
    let counted = consumer.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(counted.stdout).unwrap().trim(), "3000000");
}

#[test]
fn consumer_that_comes_after_the_producers_end_gets_what_is_in_the_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(&folder);
    let path = fifo.path().to_owned();
    assert!(
        shell("echo early > \"$1\"", &fifo)
            .wait()
            .unwrap()
            .success()
    );
    let end = std::thread::spawn(move || fifo.end(&Stop::new().unwrap()).unwrap());
    let mut text = String::new();
    File::open(path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "early\n");
    assert!(end.join().unwrap());
}

#[test]
fn pipe_whose_consumer_never_comes_is_ended_by_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Stop::new().unwrap();
    stop.give().unwrap();
    assert!(!fifo(&folder).end(&stop).unwrap());
}

#[test]
fn consumer_that_leaves_makes_no_signal_and_the_rest_is_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(&folder);
    let consumer = shell("head -c 10 \"$1\"", &fifo);
    let mut producer = shell("head -c 5000000 /dev/zero > \"$1\"", &fifo);
    assert_eq!(consumer.wait_with_output().unwrap().stdout, [0; 10]);
    let stop = Stop::new().unwrap();
    let gone = std::thread::scope(|scope| {
        let pump = scope.spawn(|| discard(fifo.read_end(), &stop).unwrap());
        assert!(
            producer.wait().unwrap().success(),
            "the producer was failed"
        );
        stop.give().unwrap();
        pump.join().unwrap()
    });
    assert!(gone < 5_000_000, "the consumer took some");
}

#[test]
fn output_without_a_consumer_is_stored_and_read_by_a_late_one() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(&folder);
    let mut object = growing();
    let mut reader = object.reader().unwrap();
    let mut producer = shell("head -c 4000000 /dev/zero > \"$1\"", &fifo);
    let stop = Stop::new().unwrap();
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| store(fifo.read_end(), &mut object, &stop).unwrap());
        assert!(producer.wait().unwrap().success());
        stop.give().unwrap();
        pump.join().unwrap();
    });
    assert_eq!(object.commit(), 4_000_000);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() == 4_000_000 && bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn pushing_ends_when_the_caller_says_that_the_consumer_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(&folder);
    let mut object = growing();
    crate::bytes::write(&mut object, 5_000_000, || 60_000).unwrap();
    let (reader, stop) = (object.reader().unwrap(), Stop::new().unwrap());
    object.commit();
    let consumer = shell("head -c 10 \"$1\" | wc -c", &fifo);
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| push(reader, fifo.write_end(), &stop).unwrap());
        assert!(consumer.wait_with_output().unwrap().status.success());
        stop.give().unwrap();
        assert!(pump.join().unwrap() < 5_000_000);
    });
}
