//! A bad network: it cuts or damages the first connections and lets later ones through.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// What happens to one connection, at so many bytes from the server.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Cut(u64),
    FlipBit(u64),
}

/// Listens, and passes connections on to `server`, the first ones with these faults.
pub fn start(server: SocketAddr, faults: Vec<Fault>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut faults = faults.into_iter();
        for client in listener.incoming() {
            let (client, fault) = (client.unwrap(), faults.next());
            let Ok(server) = TcpStream::connect(server) else {
                continue;
            };
            let (up_from, up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(&up_from, &up_to, None));
            std::thread::spawn(move || pass(&server, &client, fault));
        }
    });
    address
}

/// Passes bytes until an end, a cut or an error, and closes both.
fn pass(mut from: &TcpStream, mut to: &TcpStream, fault: Option<Fault>) {
    let mut buffer = [0; 16 << 10];
    let mut passed = 0;
    loop {
        let room = match fault {
            Some(Fault::Cut(at)) => (at - passed).min(buffer.len() as u64) as usize,
            _ => buffer.len(),
        };
        let count = from.read(&mut buffer[..room]).unwrap_or(0);
        if let Some(Fault::FlipBit(at)) = fault
            && (passed..passed + count as u64).contains(&at)
        {
            buffer[(at - passed) as usize] ^= 4;
        }
        passed += count as u64;
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }
}
