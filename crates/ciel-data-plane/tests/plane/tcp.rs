//! The TCP data plane by itself: tokens, names, and what it says when it cannot be reached.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use ciel_data_plane::{
    Catalogue, Fetch, Found, GrowingReader, Server, Stop, StreamFault, Token, pour,
};

use crate::bytes::{read, write};
use crate::wiring::growing;

struct One(GrowingReader);

impl Catalogue for One {
    fn find(&self, name: &str) -> Found {
        match name {
            "one" => Found::Stored(self.0.again().unwrap()),
            _ => Found::Nothing,
        }
    }
}

fn serve(token: &Token, length: u64) -> Server {
    let mut object = growing();
    let reader = object.reader().unwrap();
    write(&mut object, length, || 60_000).unwrap();
    object.commit();
    let address = "127.0.0.1:0".parse().unwrap();
    Server::start(address, token.clone(), Arc::new(One(reader))).unwrap()
}

fn fault(mut fetch: Fetch) -> StreamFault {
    let error = fetch.read(&mut [0; 10]).unwrap_err();
    StreamFault::of(&error)
        .expect("a fault of the stream")
        .clone()
}

#[test]
fn fetch_from_an_offset_gets_the_rest() {
    let token = Token::random().unwrap();
    let server = serve(&token, 700_000);
    let mut fetch = Fetch::new(server.address(), token, "one").from(600_000);
    let (bytes, end) = read(&mut fetch, 600_000, u64::MAX, 777);
    end.unwrap();
    assert_eq!((bytes, fetch.position_bytes()), (100_000, 700_000));
}

#[test]
fn other_token_and_unknown_name_are_refused_clearly() {
    let token = Token::random().unwrap();
    let server = serve(&token, 10);
    let address = server.address();
    let other = Token::random().unwrap();
    let refused = fault(Fetch::new(address, other.clone(), "one"));
    assert_eq!(
        refused.to_string(),
        format!("{address} refuses the token of this run")
    );
    let unknown = fault(Fetch::new(address, token, "two"));
    assert_eq!(
        unknown.to_string(),
        format!("{address} has no object \"two\"")
    );
    assert_eq!(format!("{other:?}"), "Token(secret)");
}

#[test]
fn server_that_has_gone_is_named_after_some_attempts() {
    let token = Token::random().unwrap();
    let server = serve(&token, 10);
    let address = server.address();
    drop(server);
    let attempts = ciel_data_plane::limits::CONNECTS_MAX;
    let expected = StreamFault::Unreachable {
        address: address.to_string(),
        attempts,
        read: 0,
    };
    assert_eq!(fault(Fetch::new(address, token, "one")), expected);
}

#[test]
fn server_survives_clients_that_talk_nonsense() {
    let token = Token::random().unwrap();
    let server = serve(&token, 1_000);
    let talk = |address: SocketAddr, bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(bytes);
    };
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], &[], &[0; 3]] {
        talk(server.address(), bytes);
    }
    let mut fetch = Fetch::new(server.address(), token, "one");
    let (bytes, end) = read(&mut fetch, 0, u64::MAX, 100);
    end.unwrap();
    assert_eq!(bytes, 1_000);
}

/// Tells the copy of this test in the child process that its descriptors are to be used up.
const FEW: &str = "CIEL_TEST_FEW_DESCRIPTORS";

/// The server tried to accept again and again, and used up a core.
#[test]
fn connection_for_which_no_descriptor_is_left_breaks() {
    if std::env::var_os(FEW).is_some() {
        return connect_without_descriptors();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tcp::connection_for_which_no_descriptor_is_left_breaks",
        ])
        .env(FEW, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
}

/// The child: the only descriptor that is left is that of the client.
fn connect_without_descriptors() {
    let token = Token::random().unwrap();
    let server = serve(&token, 10);
    let few = rustix::process::Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    let null = || std::fs::File::open("/dev/null");
    let mut used: Vec<_> = std::iter::from_fn(|| null().ok()).collect();
    used.pop();
    let mut client = TcpStream::connect(server.address()).unwrap();
    let limit = std::time::Duration::from_secs(600);
    client.set_read_timeout(Some(limit)).unwrap();
    match client.read(&mut [0]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

#[test]
fn fetch_that_is_told_to_stop_does_not_wait_for_a_silent_server() {
    let token = Token::random().unwrap();
    let mut object = growing();
    let reader = object.reader().unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(address, token.clone(), Arc::new(One(reader))).unwrap();
    write(&mut object, 10, || 10).unwrap();
    let stop = Stop::new().unwrap();
    let mut fetch = Fetch::new(server.address(), token, "one").until(stop.clone());
    assert_eq!(read(&mut fetch, 0, 10, 10).0, 10);
    stop.give().unwrap();
    assert_eq!(fault(fetch), StreamFault::GivenUp { read: 10 });
}

#[test]
fn object_is_poured_into_a_pipe_and_each_byte_of_it_is_told() {
    let token = Token::random().unwrap();
    let server = serve(&token, 700_000);
    let mut fetch = Fetch::new(server.address(), token, "one");
    let (mut read_end, write_end) = std::io::pipe().unwrap();
    let thread = std::thread::spawn(move || {
        let mut moved = 0;
        let stop = Stop::new().unwrap();
        let is_whole = pour(&mut fetch, write_end, &stop, |bytes| moved += bytes);
        (is_whole.unwrap(), moved, fetch.connections())
    });
    let (bytes, end) = read(&mut read_end, 0, u64::MAX, 10_000);
    end.unwrap();
    assert_eq!(
        (bytes, thread.join().unwrap()),
        (700_000, (true, 700_000, 1))
    );
}

#[test]
fn consumer_that_leaves_its_pipe_or_is_stopped_ends_the_pouring() {
    let token = Token::random().unwrap();
    let server = serve(&token, 700_000);
    let (read_end, write_end) = std::io::pipe().unwrap();
    drop(read_end);
    let stop = Stop::new().unwrap();
    let mut fetch = Fetch::new(server.address(), token.clone(), "one");
    assert!(!pour(&mut fetch, write_end, &stop, |_| {}).unwrap());
    let (_read_end, write_end) = std::io::pipe().unwrap();
    let mut fetch = Fetch::new(server.address(), token, "one");
    stop.give().unwrap();
    assert!(!pour(&mut fetch, write_end, &stop, |_| {}).unwrap());
}

#[test]
fn server_sends_a_growing_object_when_as_much_is_new_as_its_reader_asks_for() {
    let token = Token::random().unwrap();
    let mut object = growing();
    let reader = object.reader().unwrap().with_granularity(100);
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(address, token.clone(), Arc::new(One(reader))).unwrap();
    let mut fetch = Fetch::new(server.address(), token, "one");
    let mut found = Vec::new();
    for wake in 0..3 {
        let (told, begun) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            told.send(()).unwrap();
            let mut bytes = [0; 1000];
            let count = fetch.read(&mut bytes).unwrap();
            (fetch, count)
        });
        begun.recv().unwrap();
        write(&mut object, 100 + wake, || 1).unwrap();
        let (back, count) = waits.join().unwrap();
        fetch = back;
        found.push(count);
    }
    object.commit();
    assert!(found.iter().all(|count| *count >= 100), "{found:?}");
}
