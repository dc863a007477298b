//! Ports made at run time: rings that lead back into the process, and any other virtual device.

use std::ffi::CString;

use dpdk_sys as sys;

use crate::{Eal, PortError, device::failed, eal::port_name};

/// Rings that some ports share; what waits in them is freed once all those ports are closed.
#[derive(Debug)]
pub(crate) struct RingGroup {
    rings: Vec<Ring>,
    ports: Vec<u16>,
}

/// A ring of packets. Its memory lives as long as the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ring(*mut sys::dl_ring);

// SAFETY: the pointer is used only while the list of rings is locked, and by drivers through their queues.
unsafe impl Send for Ring {}

/// The most queues of a ring port (`RTE_PMD_RING_MAX_RX_RINGS`).
const QUEUES_MAX: u16 = 16;

impl Eal {
    /// Makes two ports wired back to back by rings of `size` packets: what one sends, the other receives. Each has
    /// `queues` queues each way, of which queue n is wired to queue n. Their names are returned.
    pub fn ring_pair(&self, name: &str, size: usize, queues: u16) -> Result<(String, String), PortError> {
        let there = make_rings(&format!("{name}_ab"), size, queues)?;
        let back = make_rings(&format!("{name}_ba"), size, queues)?;
        let a = port_from_rings(&format!("{name}_a"), &back, &there)?;
        let b = port_from_rings(&format!("{name}_b"), &there, &back)?;
        self.rings().push(RingGroup {
            rings: [there, back].concat(),
            ports: vec![a, b],
        });
        Ok((self.name_of(a, name)?, self.name_of(b, name)?))
    }

    /// Makes a port with `queues` queues, each wired to itself by a ring of `size` packets: what it sends, it receives. Its
    /// name is returned.
    pub fn ring_loop(&self, name: &str, size: usize, queues: u16) -> Result<String, PortError> {
        let rings = make_rings(name, size, queues)?;
        let port = port_from_rings(name, &rings, &rings)?;
        self.rings().push(RingGroup {
            rings,
            ports: vec![port],
        });
        self.name_of(port, name)
    }

    /// Makes a port that swallows what it is sent, and receives frames of `frame_len` bytes (without FCS) without
    /// end. What they hold is what the pool's buffers hold: [`crate::Pool::prefill`]. Its name is returned.
    pub fn null(&self, name: &str, frame_len: usize) -> Result<String, PortError> {
        self.add_device(&format!("net_null_{name}"), &format!("size={frame_len}"))
    }

    /// Makes a virtual device: its name begins with its driver (`net_tap0`), its arguments are DPDK's
    /// (`iface=tap0`). Its name is returned.
    pub fn add_device(&self, name: &str, arguments: &str) -> Result<String, PortError> {
        let (c_name, c_arguments) = (c_string(name, name)?, c_string(name, arguments)?);
        // SAFETY: both are zero-terminated and copied by EAL, which runs while `self` lives.
        let result = unsafe { sys::dl_vdev_add(c_name.as_ptr(), c_arguments.as_ptr()) };
        if result < 0 {
            return Err(failed(name, &format!("making it with {arguments:?}"), result));
        }
        Ok(name.to_owned())
    }

    fn name_of(&self, port: u16, name: &str) -> Result<String, PortError> {
        port_name(port).ok_or_else(|| PortError::Unknown {
            name: name.to_owned(),
            ports: self.ports(),
            log: Vec::new(),
        })
    }
}

fn c_string(name: &str, text: &str) -> Result<CString, PortError> {
    CString::new(text).map_err(|_| PortError::Invalid {
        name: name.to_owned(),
        problem: "its name or arguments hold a zero byte".to_owned(),
    })
}

fn make_rings(name: &str, size: usize, queues: u16) -> Result<Vec<Ring>, PortError> {
    let invalid = |problem: String| PortError::Invalid {
        name: name.to_owned(),
        problem,
    };
    if queues == 0 || queues > QUEUES_MAX {
        return Err(invalid(format!(
            "{queues} queues, a ring port has 1 to {QUEUES_MAX}"
        )));
    }
    let count = u32::try_from(size)
        .ok()
        .filter(|count| (1..1 << 24).contains(count));
    let count =
        count.ok_or_else(|| invalid(format!("a ring of {size} packets, possible are 1 to 16777215")))?;
    (0..queues)
        .map(|queue| {
            let ring_name = c_string(name, &format!("{name}_{queue}"))?;
            let mut error = 0;
            // SAFETY: the name is zero-terminated and copied.
            let ring = unsafe { sys::dl_ring_create(ring_name.as_ptr(), count, -1, &raw mut error) };
            if ring.is_null() {
                Err(failed(name, "making its rings", error))
            } else {
                Ok(Ring(ring))
            }
        })
        .collect()
}

fn port_from_rings(name: &str, rx: &[Ring], tx: &[Ring]) -> Result<u16, PortError> {
    let c_name = c_string(name, name)?;
    let pointers = |rings: &[Ring]| rings.iter().map(|ring| ring.0).collect::<Vec<_>>();
    let (mut rx, mut tx) = (pointers(rx), pointers(tx));
    let queues = rx.len() as u32;
    // SAFETY: `queues` valid rings each way (both lists come from `make_rings` with one count); they live as long as
    // the environment.
    let port =
        unsafe { sys::dl_port_from_rings(c_name.as_ptr(), rx.as_mut_ptr(), tx.as_mut_ptr(), queues, -1) };
    u16::try_from(port).map_err(|_| failed(name, "making a port of rings", port))
}

/// A port was closed: once the last one of its rings is, what waits in them is freed.
pub(crate) fn closed(eal: &Eal, port: u16) {
    for group in eal.rings().iter_mut().filter(|group| group.ports.contains(&port)) {
        group.ports.retain(|other| *other != port);
        if group.ports.is_empty() {
            for ring in &group.rings {
                // SAFETY: every port that used the ring is closed, so nobody else does.
                unsafe { sys::dl_ring_drain(ring.0) };
            }
        }
    }
}
