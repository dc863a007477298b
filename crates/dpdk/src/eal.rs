//! The DPDK environment: started once, ended when dropped, which the borrow checker puts after everything in it.

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, OsStr, c_char},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use dpdk_sys as sys;

use crate::{error::EalError, error::os_error, gate, log, virtual_port::RingGroup};

static STARTED: AtomicBool = AtomicBool::new(false);

/// How many of DPDK's last log lines an error quotes.
pub(crate) const QUOTED_LINES: usize = 4;

/// The running DPDK environment.
#[derive(Debug)]
pub struct Eal {
    /// Ports that were handed out: a second owner would mean two owners of one queue.
    claimed: Mutex<BTreeSet<u16>>,
    rings: Mutex<Vec<RingGroup>>,
    /// The log reaches standard error too.
    echo: bool,
    /// Other processes may attach.
    serves_dumps: AtomicBool,
}

impl Eal {
    /// Starts DPDK with these arguments (without the program's name). Its log stays in memory: what fails quotes the end of it.
    pub fn init(arguments: &[String]) -> Result<Self, EalError> {
        Self::init_with(arguments, None, false)
    }

    /// Like [`Eal::init`]. Of the drivers in DPDK's directory it loads no network drivers but `drivers` (`af_xdp` of
    /// `librte_net_af_xdp.so`), and nothing that these do not need: for ports that are no hardware, which no other process of DPDK
    /// shares. With `echo` DPDK's log is on standard error too.
    pub fn init_with(arguments: &[String], drivers: Option<&[&str]>, echo: bool) -> Result<Self, EalError> {
        if let Some(help) = arguments
            .iter()
            .find(|argument| ["-h", "--help"].contains(&argument.as_str()))
        {
            return Err(EalError::Help(help.clone()));
        }
        let drivers = drivers.map(DriverNames::new).transpose()?;
        let is_virtual = arguments.iter().any(|argument| argument == "--no-pci");
        let mut all = vec![c"dropless".to_owned()];
        for argument in arguments {
            all.push(CString::new(argument.as_str()).map_err(|_| EalError::Argument(argument.clone()))?);
        }
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(EalError::AlreadyStarted);
        }
        gate::register();
        log::capture(echo);

        // EAL reorders the array and keeps pointers into it: it is left allocated for ever.
        let mut pointers: Vec<*mut c_char> = all.into_iter().map(CString::into_raw).collect();
        let count = i32::try_from(pointers.len()).unwrap_or(i32::MAX);
        pointers.push(std::ptr::null_mut());
        let quiet = if echo { None } else { log::Quiet::begin() };
        // SAFETY: `pointers` holds `count` zero-terminated strings and a final null, all leaked; STARTED makes this
        // the only call in the life of the process, and `drivers` outlives it.
        let result = unsafe {
            // Drivers of hardware wait by the rate that EAL measures.
            sys::dl_short_naps(i32::from(is_virtual));
            sys::dl_only_drivers(drivers.as_ref().map_or(std::ptr::null(), DriverNames::as_ptr));
            let result = sys::dl_eal_init(count, pointers.leak().as_mut_ptr());
            sys::dl_only_drivers(std::ptr::null());
            sys::dl_short_naps(0);
            result
        };
        let mut log = log::tail(QUOTED_LINES);
        let printed = quiet.map(log::Quiet::end).unwrap_or_default();
        if result < 0 {
            // Of what was printed the usage is no help; getopt names the argument it does not know.
            log.splice(
                0..0,
                printed
                    .lines()
                    .filter(|line| line.starts_with("dropless: "))
                    .map(str::to_owned),
            );
            return Err(EalError::Init {
                arguments: arguments.join(" "),
                source: os_error(result),
                log,
            });
        }
        Ok(Self {
            claimed: Mutex::default(),
            rings: Mutex::default(),
            echo,
            serves_dumps: AtomicBool::new(false),
        })
    }

    /// Serves `dpdk-dumpcap` and `dpdk-pdump` from now on: they attach as secondary processes, and EAL must have been
    /// started so that others can (hugepages in files, not `--in-memory`). Workers that start later have no cache of
    /// buffers: EAL knows a thread, or lets other processes in.
    pub fn serve_dumps(&self) -> Result<(), EalError> {
        // SAFETY: EAL runs while `self` lives; a second call only registers anew.
        match unsafe { sys::dl_pdump_init() } {
            0 => {
                self.serves_dumps.store(true, Ordering::Relaxed);
                Ok(())
            }
            error => Err(EalError::Dumps(os_error(error))),
        }
    }

    pub(crate) fn serves_dumps(&self) -> bool {
        self.serves_dumps.load(Ordering::Relaxed)
    }

    /// The names of all ports, in the order of their ids.
    pub fn ports(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut from = 0;
        loop {
            // SAFETY: a plain read of EAL's port table; EAL runs while `self` lives.
            let port = unsafe { sys::dl_port_next(from) };
            if u32::from(port) == sys::DL_NO_PORT {
                return names;
            }
            names.extend(port_name(port));
            from = port + 1;
        }
    }

    /// Does `work`; what libraries print meanwhile goes into the log if they are `chatty` and it is not shown.
    pub(crate) fn hush<T>(&self, chatty: bool, work: impl FnOnce() -> T) -> T {
        let quiet = (chatty && !self.echo).then(log::Quiet::begin).flatten();
        let result = work();
        quiet.map(log::Quiet::end);
        result
    }

    /// Where EAL keeps files while it runs, such as `/var/run/dpdk/PREFIX`.
    pub fn runtime_directory(&self) -> PathBuf {
        // SAFETY: a zero-terminated string that lives as long as the process.
        let directory = unsafe { CStr::from_ptr(sys::dl_runtime_dir()) };
        PathBuf::from(OsStr::from_bytes(directory.to_bytes()))
    }

    /// Takes the port: false when somebody has it.
    pub(crate) fn claim(&self, port: u16) -> bool {
        lock(&self.claimed).insert(port)
    }

    /// Gives a port back that was never configured.
    pub(crate) fn release(&self, port: u16) {
        lock(&self.claimed).remove(&port);
    }

    pub(crate) fn rings(&self) -> MutexGuard<'_, Vec<RingGroup>> {
        lock(&self.rings)
    }
}

/// Names of drivers, as the shim takes them.
struct DriverNames {
    /// What `pointers` point to.
    _names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl DriverNames {
    /// Virtual devices have a bus, and buffers a way to be kept: no port goes without these two.
    const ALWAYS: [&str; 2] = ["bus_vdev", "mempool_ring"];

    fn new(drivers: &[&str]) -> Result<Self, EalError> {
        let names = drivers.iter().map(|driver| format!("net_{driver}"));
        let names = names.chain(Self::ALWAYS.map(str::to_owned));
        let names = names.map(|name| CString::new(name.as_str()).map_err(|_| EalError::Argument(name)));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let pointers = names.iter().map(|name| name.as_ptr());
        Ok(Self {
            pointers: pointers.chain([std::ptr::null()]).collect(),
            _names: names,
        })
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// The name of the port with this id.
pub(crate) fn port_name(port: u16) -> Option<String> {
    let mut room = [0; 128];
    // SAFETY: `room` has `room.len()` writable bytes; the shim ends what it writes with a zero.
    let result = unsafe { sys::dl_port_name(port, room.as_mut_ptr(), room.len()) };
    // SAFETY: zero-terminated: by the shim, or untouched and all zero.
    let name = unsafe { CStr::from_ptr(room.as_ptr()) }
        .to_string_lossy()
        .into_owned();
    (result == 0).then_some(name)
}

/// DPDK's version, such as `DPDK 22.11.11`: of the library that runs, not of the one that was built with.
pub fn version() -> String {
    // SAFETY: a constant zero-terminated string, which is there without EAL, too.
    unsafe { CStr::from_ptr(sys::dl_version()) }
        .to_string_lossy()
        .into_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is whole after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Eal {
    fn drop(&mut self) {
        let directory = self.runtime_directory();
        // SAFETY: every pool, port, queue and packet borrows `self`, so none is left to be used.
        unsafe { sys::dl_eal_cleanup() };
        // DPDK empties it and leaves it.
        let _ = std::fs::remove_dir(directory);
    }
}
