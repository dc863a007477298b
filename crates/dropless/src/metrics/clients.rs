//! Who is connected to `--metrics`: at most so many, and whoever comes next takes the place of the one that is there longest.
//!
//! A scraper is answered within milliseconds, so that it is never the one: it is a client that only holds its place.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections served at a time.
const CLIENTS_MAX: usize = 64;
/// Threads there are at most, with those of connections that were just ended.
const THREADS_MAX: usize = 2 * CLIENTS_MAX;

#[derive(Clone)]
pub struct Client {
    /// No other one has it.
    pub number: u64,
    pub stream: Arc<TcpStream>,
}

/// All connections, the oldest first.
#[derive(Default)]
pub struct Clients {
    open: Mutex<VecDeque<Client>>,
    /// Those that came and have not gone, with those that were ended for others.
    threads: AtomicUsize,
    last: AtomicU64,
}

impl Clients {
    /// Somebody has connected; none where threads do not end as fast as connections come.
    pub fn come(&self, stream: TcpStream) -> Option<Client> {
        if self.threads.fetch_add(1, Ordering::Relaxed) >= THREADS_MAX {
            self.threads.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let client = Client {
            number: self.last.fetch_add(1, Ordering::Relaxed),
            stream: Arc::new(stream),
        };
        let mut open = self.open();
        if open.len() >= CLIENTS_MAX {
            if let Some(oldest) = open.pop_front() {
                // Its thread reads the end, and goes.
                let _ = oldest.stream.shutdown(Shutdown::Both);
            }
        }
        open.push_back(client.clone());
        Some(client)
    }

    /// One has got its answer, or has gone.
    pub fn go(&self, number: u64) {
        self.open().retain(|client| client.number != number);
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Client>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_gives_way() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let clients = Clients::default();
        let come = || {
            let near = TcpStream::connect(address).expect("connecting");
            let (far, _) = listener.accept().expect("accepting");
            (near, clients.come(far))
        };
        let mut first = come();
        let others: Vec<_> = (1..CLIENTS_MAX).map(|_| come()).collect();
        assert!(others.iter().all(|(_, client)| client.is_some()));
        let next = come();
        assert!(next.1.is_some());
        assert_eq!(first.0.read(&mut [0]).expect("its end"), 0);
        // Nobody has gone: only so many more are let in.
        let more: Vec<_> = (CLIENTS_MAX + 1..THREADS_MAX).map(|_| come()).collect();
        assert!(more.iter().all(|(_, client)| client.is_some()));
        assert!(come().1.is_none());
        clients.go(first.1.expect("a client").number);
        assert!(come().1.is_some());
    }
}
