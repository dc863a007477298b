//! What root may do is given up once it has been used: ports are open, addresses are taken. Each thread has its own
//! rights, which those that it starts inherit. What each needs is a table in `docs/decisions/0020-giving-up-rights.md`.

use host::{Capability, KeptRights, PortUri};
use measure::Note;
use rustix::io::Result;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What the control thread keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Nothing where a port's driver may want anything, in any thread.
    rights: Option<CapabilitySet>,
}

impl Kept {
    /// What is needed with these ports open, where `explains` says whether it is asked who took the cores.
    pub fn with(ports: &[PortUri], explains: bool) -> Self {
        Self::of(ports, report::ours::invoker().is_some(), explains)
    }

    fn of(ports: &[PortUri], gives_away: bool, explains: bool) -> Self {
        // Rows, pages and plans lie where the user wants them, perhaps in a directory that root only may write to as root.
        // Threads of DPDK that keep everything are moved into the cores' partition with us.
        let mut rights = CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_NICE;
        // Whose a counter of perf is stands in what other processes have open.
        rights.set(CapabilitySet::SYS_PTRACE, explains);
        rights.set(CapabilitySet::CHOWN, gives_away);
        for port in ports {
            match port.kind.traits().keeps {
                KeptRights::All => return Self { rights: None },
                KeptRights::Only(needed) => rights |= set_of(needed),
            }
        }
        Self { rights: Some(rights) }
    }

    /// Gives up the rest, of the thread that calls this and of those that it will start.
    pub fn drop_the_rest(self) -> Option<Note> {
        let dropped = match self.rights {
            Some(rights) => limit(rights),
            None => set_no_new_privs(true),
        };
        dropped.err().map(|cause| {
            let text = format!("the rights of root could not be given up: {cause}");
            Note::new("rights_kept", text)
        })
    }

    /// Gives up everything, of a worker: what it needs is open.
    pub fn drop_in_worker(self) {
        if self.rights.is_some() {
            drop_all();
        }
    }
}

/// Gives up everything that the calling thread may do, and that those may that it will start. It serves all the same
/// where that cannot be.
pub fn drop_all() {
    let _ = limit(CapabilitySet::empty());
}

/// The same of a thread that reads files which the user named, wherever they lie.
pub fn drop_all_but_reading() {
    let _ = limit(CapabilitySet::DAC_OVERRIDE);
}

fn set_of(capabilities: &[Capability]) -> CapabilitySet {
    capabilities
        .iter()
        .fold(CapabilitySet::empty(), |set, capability| {
            set | CapabilitySet::from_bits_retain(capability.mask())
        })
}

/// Leaves `rights` to the calling thread, of those that it has; and no program that it starts gets more.
fn limit(rights: CapabilitySet) -> Result<()> {
    set_no_new_privs(true)?;
    let own = capabilities(None)?;
    // Kernels before 4.3 have no ambient set, and without CAP_SETPCAP the bounds stay: nothing new comes of either.
    let _ = clear_ambient_capability_set();
    for capability in (!rights).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let permitted = own.permitted & rights;
    set_capabilities(
        None,
        CapabilitySets {
            effective: own.effective & permitted,
            permitted,
            inheritable: CapabilitySet::empty(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ports: &[&str], gives_away: bool) -> Option<CapabilitySet> {
        let ports: Vec<PortUri> = ports.iter().map(|port| port.parse().expect("a port")).collect();
        Kept::of(&ports, gives_away, false).rights
    }

    #[test]
    fn what_is_kept_is_what_the_neediest_port_wants() {
        let files = CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_NICE;
        let (net, xdp) = (
            CapabilitySet::NET_ADMIN,
            set_of(&[Capability::Bpf, Capability::SysAdmin]),
        );
        assert_eq!(kept(&["ring", "null", "kernel:10.0.0.1"], false), Some(files));
        assert_eq!(kept(&["ring"], true), Some(files | CapabilitySet::CHOWN));
        assert_eq!(kept(&["tap:a", "packet:b"], false), Some(files | net));
        assert_eq!(kept(&["ring", "xdp:a"], false), Some(files | net | xdp));
        assert_eq!(kept(&["xdp:a", "pci:0000:3b:00.0"], false), None);
        assert_eq!(kept(&["vdev:net_null0"], true), None);
        assert_eq!(
            Kept::of(&[], false, true).rights,
            Some(files | CapabilitySet::SYS_PTRACE)
        );
    }

    /// A thread of its own, whose rights are gone with it.
    #[test]
    fn a_thread_gives_up_what_it_has_and_those_it_starts_have_no_more() {
        let limited = std::thread::spawn(|| {
            limit(CapabilitySet::NET_ADMIN).expect("rights to give up");
            let child = std::thread::spawn(|| capabilities(None).expect("rights"));
            (
                capabilities(None).expect("rights"),
                child.join().expect("a thread"),
            )
        });
        let (own, childs) = limited.join().expect("a thread");
        assert_eq!(own, childs);
        assert!(CapabilitySet::NET_ADMIN.contains(own.permitted | own.effective));
        assert!(own.inheritable.is_empty());
        assert!(
            !rustix::thread::no_new_privs().expect("an answer"),
            "others keep theirs"
        );
    }
}
