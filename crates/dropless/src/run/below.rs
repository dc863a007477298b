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
}

impl Below {
    /// The interface `name` as it is now.
    pub fn now(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            number: host::interface::index(&Sys::at("/"), name),
            was_gone: Cell::new(false),
            needed: 0,
            least: Cell::new(u32::MAX),
        }
    }

    /// The same, where frames that its MTU must be so large for will be sent.
    pub fn carrying(self, needed: u32) -> Self {
        Self { needed, ..self }
    }

    /// One look more.
    pub fn look(&self) {
        if let Some(mtu) = host::interface::mtu(&Sys::at("/"), &self.name) {
            self.least.set(self.least.get().min(mtu));
        }
        self.is_gone();
    }

    /// Whether it was removed, also if another one has its name by now: the port's sockets are bound to the first.
    pub fn is_gone(&self) -> bool {
        let number = host::interface::index(&Sys::at("/"), &self.name);
        if number.is_none() || number != self.number {
            self.was_gone.set(true);
        }
        self.was_gone.get()
    }

    /// The MTU that it should have had, and a smaller one that it had.
    pub fn too_short(&self) -> Option<(u32, u32)> {
        (self.least.get() < self.needed).then(|| (self.needed, self.least.get()))
    }
}
