//! A VLAN interface where the kernel was built without them: threads put the tag on and take it off.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvfrom, send, setsockopt,
    socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::{Namespace, Need};

/// `PACKET_OUTGOING` of packet(7).
const OUTGOING: u8 = 4;

/// The interface `name` in `namespace`, without addresses: VLAN `id` of its interface `wire`.
pub struct VlanInterface {
    stop: Arc<AtomicBool>,
    movers: Vec<JoinHandle<()>>,
}

impl VlanInterface {
    /// Makes it: the kernel's own kind where there is one, else a wire whose frames are moved with a tag.
    pub fn new(namespace: &Namespace, wire: &str, name: &str, id: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        if Need::VlanInterfaces.is_met() {
            let id = id.to_string();
            namespace.ip(&[
                "link", "add", "link", wire, "name", name, "type", "vlan", "id", &id,
            ]);
            return Self {
                stop,
                movers: Vec::new(),
            };
        }
        let inner = format!("{name}t");
        namespace.veth(name, namespace, &inner);
        namespace.without_offload(name);
        namespace.up(&inner, &[]);
        let plain = packet_socket(namespace, &inner);
        let tagged = packet_socket(namespace, wire);
        let tag = move |frame: &[u8]| [&frame[..12], &[0x81, 0], &id.to_be_bytes(), &frame[12..]].concat();
        // The kernel takes the first tag off before a packet socket sees the frame.
        let movers = vec![
            mover(&plain, &tagged, &stop, tag),
            mover(&tagged, &plain, &stop, <[u8]>::to_vec),
        ];
        Self { stop, movers }
    }
}

impl Drop for VlanInterface {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for mover in self.movers.drain(..) {
            let _ = mover.join();
        }
    }
}

/// A socket that sees and sends whole frames on one interface of the namespace.
fn packet_socket(namespace: &Namespace, interface: &str) -> Arc<OwnedFd> {
    Arc::new(namespace.inside(|| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(
            AddressFamily::Packet,
            SockType::Raw,
            flags,
            Some(SockProtocol::EthAll),
        );
        let fd = fd.expect("a packet socket");
        let address = link_address(interface).expect("the interface's address");
        bind(fd.as_raw_fd(), &address).expect("binding to the interface");
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::milliseconds(20)).expect("a time limit");
        fd
    }))
}

fn link_address(interface: &str) -> Option<LinkAddr> {
    let mut all = nix::ifaddrs::getifaddrs().ok()?;
    all.find_map(|one| {
        let address = one.address.filter(|_| one.interface_name == interface)?;
        address.as_link_addr().copied()
    })
}

/// Moves what arrives on one socket to the other, changed.
fn mover(
    from: &Arc<OwnedFd>,
    to: &Arc<OwnedFd>,
    stop: &Arc<AtomicBool>,
    change: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> JoinHandle<()> {
    let (from, to, stop) = (Arc::clone(from), Arc::clone(to), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut room = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, Some(sender))) = recvfrom::<LinkAddr>(from.as_raw_fd(), &mut room) else {
                continue;
            };
            if sender.pkttype() != OUTGOING && length >= 14 {
                let _ = send(to.as_raw_fd(), &change(&room[..length]), MsgFlags::empty());
            }
        }
    })
}
