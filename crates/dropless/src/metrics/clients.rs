//! Who is connected to `--metrics`: at most so many, and whoever comes next takes the place of the one that is there longest.
//!
//! A scraper is answered within milliseconds, so that it is never the one: it is a client that only holds its place.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections served at a time.
const CLIENTS_MAX: usize = 64;
/// Threads there are at most, with those of connections that were just ended.
const THREADS_MAX: usize = 2 * CLIENTS_MAX;
/// How long whoever comes waits for one of them to go. Their connections have ended: they only want a processor.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Client {
    /// No other one has it.
    pub number: u64,
    pub stream: Arc<TcpStream>,
}

/// Who is there.
#[derive(Default)]
pub struct Clients {
    now: Mutex<Now>,
    gone: Condvar,
}

#[derive(Default)]
struct Now {
    /// All connections, the oldest first.
    open: VecDeque<Client>,
    /// Those that came and have not gone, with those that were ended for others.
    threads: usize,
    last: u64,
}

impl Clients {
    /// Somebody has connected. Waits where threads do not end as fast as connections come; none where they do not end at all.
    pub fn come(&self, stream: TcpStream) -> Option<Client> {
        let is_full = |now: &mut Now| now.threads >= THREADS_MAX;
        let waited = self.gone.wait_timeout_while(self.now(), PATIENCE, is_full);
        let (mut now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        let client = Client {
            number: now.last,
            stream: Arc::new(stream),
        };
        (now.last, now.threads) = (now.last + 1, now.threads + 1);
        if now.open.len() >= CLIENTS_MAX {
            if let Some(oldest) = now.open.pop_front() {
                // Its thread reads the end, and goes.
                let _ = oldest.stream.shutdown(Shutdown::Both);
            }
        }
        now.open.push_back(client.clone());
        Some(client)
    }

    /// One has got its answer, or has gone.
    pub fn go(&self, number: u64) {
        let mut now = self.now();
        now.open.retain(|client| client.number != number);
        now.threads -= 1;
        self.gone.notify_all();
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Whoever comes meanwhile waits until one has gone.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(PATIENCE / 20);
                clients.go(first.1.expect("a client").number);
            });
            assert!(come().1.is_some());
        });
    }
}
