//! The interface of the kernel below a port: whether it is still the one that was there when the port was opened, and takes
//! what the port sends.

use std::cell::Cell;

use host::Sys;

/// An interface, as it was seen since its port was opened.
pub struct Below {
    name: String,
    /// The kernel's number of it. Another interface may have its name at any time, but never its number.
    number: Option<u32>,
    was_gone: Cell<bool>,
    /// The MTU that the longest frame needs.
    needed: u32,
    /// The smallest that was seen.
    least: Cell<u32>,
    /// Receive queues that it had, and the most that were seen.
    queues: u16,
    most_queues: Cell<u16>,
}

impl Below {
    /// The interface `name` as it is now.
    pub fn now(name: &str) -> Self {
        let sys = Sys::at("/");
        let queues = host::interface::rx_queues(&sys, name);
        Self {
            name: name.to_owned(),
            number: host::link::index(&sys, name),
            was_gone: Cell::new(false),
            needed: 0,
            least: Cell::new(u32::MAX),
            queues,
            most_queues: Cell::new(queues),
        }
    }

    /// The same, where frames that its MTU must be so large for will be sent.
    pub fn carrying(self, needed: u32) -> Self {
        Self { needed, ..self }
    }

    /// One look more.
    pub fn look(&self) {
        let sys = Sys::at("/");
        if let Some(mtu) = host::interface::mtu(&sys, &self.name) {
            self.least.set(self.least.get().min(mtu));
        }
        let queues = host::interface::rx_queues(&sys, &self.name);
        self.most_queues.set(self.most_queues.get().max(queues));
        self.is_gone();
    }

    /// Whether it was removed, also if another one has its name by now: the port's sockets are bound to the first.
    pub fn is_gone(&self) -> bool {
        let number = host::link::index(&Sys::at("/"), &self.name);
        if number.is_none() || number != self.number {
            self.was_gone.set(true);
        }
        self.was_gone.get()
    }

    /// The receive queues that it had when the port was opened, and a larger number that it had since.
    pub fn more_queues(&self) -> Option<(u16, u16)> {
        let most = self.most_queues.get();
        (most > self.queues).then_some((self.queues, most))
    }

    /// The MTU that it should have had, and a smaller one that it had.
    pub fn too_short(&self) -> Option<(u32, u32)> {
        (self.least.get() < self.needed).then(|| (self.needed, self.least.get()))
    }
}
