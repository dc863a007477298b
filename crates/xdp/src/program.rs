//! The program in the kernel: loading it with a rule set, and asking it.

use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenMapMut, OpenObject, ProgramInput,
};
use rules::limit::Limiter;
use rules::{Counts, Malformed, Tables};

use crate::counts;
use crate::image::{self, Image, Settings};
use crate::samples::Sampling;

#[cfg(test)]
mod tests;

/// The compiled program.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/filter.bpf.o"));

/// Why the kernel does not have the filter.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel or its library refused.
    #[error("{what}: {source}")]
    Bpf {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        source: libbpf_rs::Error,
    },
    /// The object is not what this program was built with.
    #[error("the XDP program has no {0}")]
    Missing(&'static str),
}

/// What stands behind an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no room for its maps, or there are too many.
    NoRoom,
    /// This process may not.
    NotAllowed,
    /// The kernel's verifier, or a security module, does not take the program.
    Refused,
    /// The kernel was built without BPF.
    NoBpf,
    /// This process may open no more files, of which each map and program is one.
    NoFiles,
    /// Anything else.
    Other,
}

impl Error {
    /// What stands behind it.
    pub fn why(&self) -> Why {
        const E2BIG: i32 = 7;
        const EACCES: i32 = 13;
        const EMFILE: i32 = 24;
        let Self::Bpf { source, .. } = self else {
            return Why::Other;
        };
        match (source.kind(), code(source)) {
            (ErrorKind::OutOfMemory, _) | (_, Some(E2BIG)) => Why::NoRoom,
            (_, Some(EMFILE)) => Why::NoFiles,
            // Who lacks a right is told EPERM.
            (_, Some(EACCES)) => Why::Refused,
            (ErrorKind::PermissionDenied, _) => Why::NotAllowed,
            (ErrorKind::Unsupported, _) => Why::NoBpf,
            _ => Why::Other,
        }
    }
}

/// The kernel's, which the library tells in its words alone.
fn code(source: &libbpf_rs::Error) -> Option<i32> {
    let words = format!("{source:#}");
    let (_, code) = words.rsplit_once("(os error ")?;
    code.strip_suffix(')')?.parse().ok()
}

pub(crate) fn told(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Bpf { what, source }
}

/// What the program said of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// It passes.
    pub is_allowed: bool,
    /// The rule that decided; the number of rules for the default.
    pub rule: u32,
    /// 0, or the reason's number + 1.
    pub malformed: u32,
    /// A rate had no entry left.
    pub is_full: bool,
}

/// Where a filter's rates keep what they know of groups.
#[derive(Clone, Copy, Debug)]
pub enum Groups<'f> {
    /// In a new table of at least so many entries.
    New(u32),
    /// Where another filter's do, so that a group's past counts on.
    Of(&'f Filter),
}

/// What the filters of one interface have in common, whatever rules are in force.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) buckets: u32,
    pub(crate) seed: u64,
    /// What rates know.
    pub(crate) groups: MapHandle,
    /// Those of samples, as they are called; none where nobody has made them yet.
    pub(crate) samples: Vec<(&'static str, MapHandle)>,
}

/// How a filter is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup<'s> {
    /// What there is already.
    pub(crate) shared: Option<&'s Shared>,
    /// Groups that rates remember, where there is no table of them yet.
    pub(crate) groups: u32,
    pub(crate) sampling: Sampling,
    /// As samples say it.
    pub(crate) generation: u32,
    /// Every decision is told, and the time is given.
    pub(crate) tells: bool,
}

/// Entries of the table that has room for so many groups.
pub(crate) fn buckets(groups: u32) -> u32 {
    (groups / 4).next_power_of_two()
}

/// What sections of tables are called.
const TABLES: [&str; 2] = [".rodata.", ".data."];
/// The maps of samples.
const SAMPLES: [&str; 3] = ["samples", "sampling", "period"];
/// Of samples that nobody asked for: as little as the kernel makes.
const ROOM_MIN: u32 = 4096;

/// The program with the tables of one rule set.
pub struct Filter {
    object: Object,
    rules: usize,
    buckets: u32,
    seed: u64,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

impl Filter {
    /// Loads the program with these tables, attached to nothing. One that `tells` is for tests: it takes its time from
    /// outside, and says how it decided.
    pub fn load(tables: &Tables, groups: Groups<'_>, tells: bool) -> Result<Self, Error> {
        let setup = Setup {
            tells,
            ..Setup::default()
        };
        match groups {
            Groups::New(groups) => Self::load_with(tables, Setup { groups, ..setup }),
            Groups::Of(other) => {
                let shared = other.shared()?;
                let shared = Some(&shared);
                Self::load_with(tables, Setup { shared, ..setup })
            }
        }
    }

    pub(crate) fn load_with(tables: &Tables, setup: Setup<'_>) -> Result<Self, Error> {
        // What it would print is in its errors, too.
        libbpf_rs::set_print(None);
        let (buckets, seed) = match setup.shared {
            None => (buckets(setup.groups), Limiter::seed()),
            Some(shared) => (shared.buckets, shared.seed),
        };
        let settings = Settings {
            buckets,
            seed,
            tells: setup.tells,
            denied_budget: setup.sampling.denied_per_second,
            every: setup.sampling.every,
            generation: setup.generation,
        };
        let image = Image::new(tables, settings);
        let open = |mut builder: ObjectBuilder| builder.open_memory(OBJECT);
        let mut object = open(ObjectBuilder::default()).map_err(told("the XDP program cannot be read"))?;
        let rules = tables.rules.len();
        let room = setup.sampling.room.max(ROOM_MIN);
        configure(&mut object, &image, (rules as u32, buckets, room))?;
        if let Some(shared) = setup.shared {
            let groups = [("groups", &shared.groups)].into_iter();
            let samples = shared.samples.iter().map(|(name, map)| (*name, map));
            for (name, handle) in groups.chain(samples) {
                let mut maps = object.maps_mut();
                let map = maps.find(|map| map.name() == name);
                let mut map = map.ok_or(Error::Missing(name))?;
                map.reuse_fd(handle.as_fd())
                    .map_err(told("what rates know cannot go on"))?;
            }
        }
        let object = object
            .load()
            .map_err(told("the kernel refuses the XDP program"))?;
        let mut filter = Self {
            object,
            rules,
            buckets,
            seed,
        };
        filter.fill(&image)?;
        Ok(filter)
    }

    /// What the next one of its interface has from it.
    pub(crate) fn shared(&self) -> Result<Shared, Error> {
        let samples = SAMPLES.map(|name| Ok((name, self.map(name)?)));
        Ok(Shared {
            buckets: self.buckets,
            seed: self.seed,
            groups: self.map("groups")?,
            samples: samples.into_iter().collect::<Result<_, Error>>()?,
        })
    }

    fn fill(&mut self, image: &Image) -> Result<(), Error> {
        let count = self.rules as u32;
        if count > 0 {
            let keys: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
            self.map("rules")?
                .update_batch(&keys, &image.rules, count, MapFlags::ANY, MapFlags::ANY)
                .map_err(told("the XDP program's tables cannot be filled"))?;
        }
        Ok(())
    }

    pub(crate) fn map(&self, name: &'static str) -> Result<MapHandle, Error> {
        let map = self
            .object
            .maps()
            .find(|map| map.name() == name)
            .ok_or(Error::Missing(name))?;
        MapHandle::try_from(&map).map_err(told("a map cannot be used"))
    }

    /// The program's descriptor, which lives as long as this.
    pub(crate) fn program(&self) -> Result<RawFd, Error> {
        let program = self.object.progs_mut().next();
        program
            .map(|program| program.as_fd().as_raw_fd())
            .ok_or(Error::Missing("program"))
    }

    /// What has been counted so far, on all processors.
    pub fn counts(&self) -> Result<Counts, Error> {
        counts::of_set(&self.map("counts")?, self.rules)
    }

    /// Nanoseconds that the program takes over a frame, the mean of so many rounds.
    pub fn time(&self, frame: &[u8], rounds: u32) -> Result<u64, Error> {
        let program = self.object.progs_mut().next();
        let program = program.ok_or(Error::Missing("filter"))?;
        let input = ProgramInput {
            data_in: Some(frame),
            repeat: rounds,
            ..ProgramInput::default()
        };
        let output = program
            .test_run(input)
            .map_err(told("the kernel does not run the program"))?;
        Ok(output.duration.as_nanos() as u64)
    }

    /// Runs the program over a frame, of at least 14 bytes, at this time.
    pub fn test(&self, frame: &[u8], now_ns: u64) -> Result<Told, Error> {
        let map = self.map("told")?;
        let mut given = now_ns.to_ne_bytes().to_vec();
        given.resize(24, 0);
        let zero = 0_u32.to_ne_bytes();
        map.update(&zero, &given, MapFlags::ANY)
            .map_err(told("the time cannot be given"))?;
        let program = self.object.progs_mut().next();
        let program = program.ok_or(Error::Missing("filter"))?;
        let input = ProgramInput {
            data_in: Some(frame),
            ..ProgramInput::default()
        };
        let output = program
            .test_run(input)
            .map_err(told("the kernel does not run the program"))?;
        let said = map
            .lookup(&zero, MapFlags::ANY)
            .map_err(told("the decision cannot be read"))?;
        let said = said.unwrap_or_default();
        let field = |at: usize| {
            said.get(at..)
                .and_then(<[u8]>::first_chunk)
                .copied()
                .map_or(0, u32::from_ne_bytes)
        };
        Ok(Told {
            is_allowed: output.return_value == 2,
            rule: field(8),
            malformed: field(12),
            is_full: field(16) != 0,
        })
    }
}

/// Gives a table of the program its length and what it holds.
fn lay(map: &mut OpenMapMut<'_>, bytes: &[u8]) -> Result<(), Error> {
    if bytes.is_empty() {
        return Ok(());
    }
    map.set_value_size(bytes.len() as u32)
        .map_err(told("the XDP program's tables cannot be sized"))?;
    let at = map.initial_value_mut().ok_or(Error::Missing("tables"))?;
    if at.len() != bytes.len() {
        return Err(Error::Missing("room for its tables"));
    }
    at.copy_from_slice(bytes);
    Ok(())
}

fn configure(
    object: &mut OpenObject,
    image: &Image,
    (rules, buckets, room): (u32, u32, u32),
) -> Result<(), Error> {
    let reasons = Malformed::ALL.len() as u32;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == ".rodata.layout" {
            let at = map.initial_value_mut().ok_or(Error::Missing("layout"))?;
            if at.len() != image.layout.len() {
                return Err(Error::Missing("layout of this version"));
            }
            at.copy_from_slice(&image.layout);
            continue;
        }
        let table = TABLES.iter().find_map(|section| name.strip_prefix(section));
        if let Some(table) = table {
            let bytes = match table {
                "words" => image.words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
                "slots" => image.slots.iter().flat_map(|slot| slot.to_ne_bytes()).collect(),
                "nodes" => image.nodes.iter().flat_map(image::node).collect::<Vec<u8>>(),
                // The compiler's own.
                _ => continue,
            };
            lay(&mut map, &bytes)?;
            continue;
        }
        let entries = match name.as_str() {
            "rules" => rules,
            "groups" => buckets,
            "samples" => room,
            // The default, each reason, and what found no entry.
            "counts" => rules + 1 + reasons + 1,
            _ => 1,
        };
        map.set_max_entries(entries.max(1))
            .map_err(told("the XDP program's tables cannot be sized"))?;
    }
    Ok(())
}
