//! The data plane of a run: a server of open outputs, for readers that ask for a connection.
//!
//! It listens at the loopback address from the first of them on. Its token is that of this process
//! and is written nowhere, so no other process can read a stream. It does not know the readers.
//! Read next: `streams`, for the other side.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use ciel_data_plane::{Catalogue, Fetch, Found, GrowingReader, Server, Stop, Token};

/// The server, once there is one, and what it serves.
#[derive(Default)]
pub(crate) struct DataPlane {
    offers: Arc<Offers>,
    serving: Option<(Server, Token)>,
    /// How many objects have been offered.
    count: u64,
}

/// What is offered, by the names under which it is asked for.
#[derive(Default)]
struct Offers(Mutex<HashMap<String, GrowingReader>>);

/// An object that can be fetched until this is dropped, by one reader.
pub(crate) struct Offer {
    offers: Arc<Offers>,
    name: String,
    address: SocketAddr,
    token: Token,
}

impl DataPlane {
    /// Offers an object. Each offer has a name of its own, so that a connection is never resumed
    /// with what another attempt of the producer writes.
    ///
    /// # Errors
    /// If the system refuses a port.
    pub(crate) fn offer(&mut self, object: GrowingReader) -> io::Result<Offer> {
        let (server, token) = match self.serving.take() {
            Some(serving) => serving,
            None => {
                let address = (Ipv4Addr::LOCALHOST, 0).into();
                let token = Token::random()?;
                let server = Server::start(address, token.clone(), self.offers.clone())?;
                (server, token)
            }
        };
        let name = self.count.to_string();
        self.count += 1;
        self.offers.locked().insert(name.clone(), object);
        let offer = Offer {
            offers: self.offers.clone(),
            name,
            address: server.address(),
            token: token.clone(),
        };
        self.serving = Some((server, token));
        Ok(offer)
    }

    /// Whoever listened there cannot be reached: the next offer is made elsewhere.
    pub(crate) fn give_up(&mut self, address: SocketAddr) {
        let is_it = |(server, _): &mut (Server, Token)| server.address() == address;
        drop(self.serving.take_if(is_it));
    }
}

impl Offers {
    fn locked(&self) -> MutexGuard<'_, HashMap<String, GrowingReader>> {
        self.0.lock().expect("nobody panics with the offers")
    }
}

impl Catalogue for Offers {
    fn find(&self, name: &str) -> Found {
        // Without a descriptor for it the reader goes elsewhere.
        let found = self.locked().get(name).and_then(|it| it.again().ok());
        found.map_or(Found::Nothing, Found::Stored)
    }
}

impl Offer {
    /// Where it is offered.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its reader, until that signal is given.
    pub(crate) fn fetch(&self, stop: Stop) -> Fetch {
        Fetch::new(self.address, self.token.clone(), &self.name).until(stop)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.offers.locked().remove(&self.name);
    }
}
