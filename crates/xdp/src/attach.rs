//! The program on an interface, held by a link: it goes with whoever holds it, also when that is killed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, ProgInfoIter};

use crate::stay;
use crate::{Error, Filter, StayError};

/// What the kernel calls the program.
pub const PROGRAM: &str = "dropless_filter";

/// Where packets meet the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes a buffer of its own for them.
    Native,
    /// Behind that: for drivers that cannot.
    Generic,
}

impl Mode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    const fn flag(self) -> u32 {
        match self {
            Self::Native => sys::XDP_FLAGS_DRV_MODE,
            Self::Generic => sys::XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Why an interface does not have the program.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Another program is there; its name, where it can be read.
    #[error("another XDP program is attached{}", name.as_deref().map(|name| format!(": {name}")).unwrap_or_default())]
    Taken {
        /// Its name.
        name: Option<String>,
    },
    /// The driver cannot.
    #[error("the driver has no native XDP{}", hint(source))]
    NotNative {
        /// What the kernel said.
        source: io::Error,
    },
    /// Anything else that the kernel said.
    #[error("the XDP program cannot be attached: {0}")]
    Other(#[from] io::Error),
    /// Of the program itself.
    #[error(transparent)]
    Program(#[from] Error),
    /// Of what is kept of one that stays.
    #[error(transparent)]
    Stay(#[from] StayError),
}

fn hint(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(sys_einval) if sys_einval == EINVAL => " for these settings (a large MTU, for example)".into(),
        _ => String::new(),
    }
}

const EINVAL: i32 = 22;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EOPNOTSUPP: i32 = 95;
/// `BPF_XDP` of `enum bpf_attach_type`.
const ATTACH_XDP: sys::bpf_attach_type = sys::BPF_XDP;

/// A program on an interface.
#[derive(Debug)]
pub struct Attached {
    link: OwnedFd,
    interface: u32,
}

/// What is on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// How it is attached; `None` where in some other way (in hardware, or several at once).
    pub mode: Option<Mode>,
    /// The program's number.
    pub program: u32,
    /// And name, where that can be read.
    pub name: Option<String>,
}

impl InForce {
    /// The program of this interface, if it has one.
    pub fn on(interface: u32) -> io::Result<Option<Self>> {
        let mut options = sys::bpf_xdp_query_opts {
            sz: size_of::<sys::bpf_xdp_query_opts>() as _,
            ..Default::default()
        };
        // SAFETY: `options` is as long as its `sz` says, and lives through the call.
        let result = unsafe { sys::bpf_xdp_query(number(interface)?, 0, &raw mut options) };
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result));
        }
        let (mode, program) = match u32::from(options.attach_mode) {
            sys::XDP_ATTACHED_NONE => return Ok(None),
            sys::XDP_ATTACHED_DRV => (Some(Mode::Native), options.drv_prog_id),
            sys::XDP_ATTACHED_SKB => (Some(Mode::Generic), options.skb_prog_id),
            _ => (None, options.prog_id),
        };
        let name = ProgInfoIter::default().find(|info| info.id == program);
        Ok(Some(Self {
            mode,
            program,
            name: name.map(|info| info.name.to_string_lossy().into_owned()),
        }))
    }
}

/// An interface's number as the library takes it.
pub(crate) fn number(interface: u32) -> io::Result<i32> {
    i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Filter {
    /// Puts the program onto an interface, in this mode and no other. It stays as long as what is returned lives.
    pub fn attach(&self, interface: u32, mode: Mode) -> Result<Attached, AttachError> {
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as _,
            flags: mode.flag(),
            ..Default::default()
        };
        let (program, interface_number) = (self.program()?, number(interface)?);
        // SAFETY: `options` is as long as its `sz` says; all three live through the call.
        let link = unsafe { sys::bpf_link_create(program, interface_number, ATTACH_XDP, &raw const options) };
        if link < 0 {
            let source = io::Error::from_raw_os_error(-link);
            return Err(match -link {
                EBUSY | EEXIST => AttachError::Taken {
                    name: InForce::on(interface).ok().flatten().and_then(|other| other.name),
                },
                EOPNOTSUPP | EINVAL if mode == Mode::Native => AttachError::NotNative { source },
                _ => AttachError::Other(source),
            });
        }
        // SAFETY: the kernel just made this descriptor for us.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        Ok(Attached { link, interface })
    }
}

impl Attached {
    /// That of a link which is pinned there, on this interface.
    pub(crate) fn pinned(path: &Path, interface: u32) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the name lives through the call.
        let link = unsafe { sys::bpf_obj_get(name.as_ptr()) };
        if link < 0 {
            return Err(io::Error::from_raw_os_error(-link));
        }
        // SAFETY: the kernel just made this descriptor for us.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        Ok(Self { link, interface })
    }

    /// Keeps it in force when this process ends.
    pub(crate) fn pin(&self, path: &Path) -> Result<(), StayError> {
        stay::pin(self.link.as_fd(), path)
    }

    /// Puts another program into the place of this one, at once: every packet meets the old or the new one.
    pub fn swap(&self, to: &Filter) -> Result<(), AttachError> {
        let program = to.program()?;
        // SAFETY: both descriptors live through the call; without options there is no condition.
        let result = unsafe { sys::bpf_link_update(self.link.as_raw_fd(), program, std::ptr::null()) };
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result).into());
        }
        Ok(())
    }

    /// Takes it off the interface, whoever else holds it.
    pub(crate) fn detach(&self) -> io::Result<()> {
        // SAFETY: the descriptor lives through the call.
        let result = unsafe { sys::bpf_link_detach(self.link.as_raw_fd()) };
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result));
        }
        Ok(())
    }

    /// Whether it is still in force: nobody detached it, and the interface is there. It costs one system call.
    pub fn is_in_force(&self) -> bool {
        self.number() == Some(self.interface)
    }

    /// Whether it is off for good: in another network namespace an interface may have another number.
    pub(crate) fn is_off(&self) -> bool {
        self.number() == Some(0)
    }

    /// The number of its interface now. The kernel forgets the interface of a link that was detached, or whose interface went.
    fn number(&self) -> Option<u32> {
        match LinkInfo::from_fd(self.link.as_fd()).ok()?.info {
            LinkTypeInfo::Xdp(xdp) => Some(xdp.ifindex),
            _ => None,
        }
    }

    /// The number of its program.
    pub(crate) fn program(&self) -> Option<u32> {
        LinkInfo::from_fd(self.link.as_fd()).ok().map(|link| link.prog_id)
    }

    /// What is on its interface now: nothing, where that was removed.
    pub fn in_force(&self) -> io::Result<Option<InForce>> {
        InForce::on(self.interface)
    }
}
