//! The program in the kernel: loading it with a rule set, and asking it.

use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramInput};
use rules::limit::Limiter;
use rules::{Count, Counts, Malformed, Tables};

use crate::image::{self, Image, Settings};

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

fn told(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
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
        let (buckets, seed) = match groups {
            Groups::New(entries) => ((entries / 4).next_power_of_two(), Limiter::seed()),
            Groups::Of(other) => (other.buckets, other.seed),
        };
        let image = Image::new(tables, Settings { buckets, seed, tells });
        let open = |mut builder: ObjectBuilder| builder.open_memory(OBJECT);
        let mut object = open(ObjectBuilder::default()).map_err(told("the XDP program cannot be read"))?;
        let rules = tables.rules.len();
        configure(&mut object, &image, rules as u32, buckets)?;
        if let Groups::Of(other) = groups {
            let shared = other.map("groups")?;
            let mut maps = object.maps_mut();
            let mut map = maps
                .find(|map| map.name() == "groups")
                .ok_or(Error::Missing("groups"))?;
            map.reuse_fd(shared.as_fd()).map_err(told("rates cannot go on"))?;
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

    fn fill(&mut self, image: &Image) -> Result<(), Error> {
        let words: Vec<u8> = image.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let nodes: Vec<u8> = image.nodes.iter().flat_map(image::node).collect();
        for (name, bytes) in [("words", &words), ("nodes", &nodes)] {
            if !bytes.is_empty() {
                self.map(name)?
                    .update(&0_u32.to_ne_bytes(), bytes, MapFlags::ANY)
                    .map_err(told("the XDP program's tables cannot be filled"))?;
            }
        }
        let count = self.rules as u32;
        if count > 0 {
            let keys: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
            self.map("rules")?
                .update_batch(&keys, &image.rules, count, MapFlags::ANY, MapFlags::ANY)
                .map_err(told("the XDP program's tables cannot be filled"))?;
        }
        Ok(())
    }

    fn map(&self, name: &'static str) -> Result<MapHandle, Error> {
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
        let map = self.map("counts")?;
        let mut next = 0_u32;
        let mut count = || {
            let found = map.lookup_percpu(&next.to_ne_bytes(), MapFlags::ANY);
            next += 1;
            let found = found.map_err(told("counters cannot be read"))?;
            let mut sum = Count::default();
            for value in found.iter().flatten() {
                let word = |at: usize| {
                    value
                        .get(at..)
                        .and_then(<[u8]>::first_chunk)
                        .copied()
                        .map_or(0, u64::from_ne_bytes)
                };
                sum += Count {
                    packets: word(0),
                    bytes: word(8),
                };
            }
            Ok::<_, Error>(sum)
        };
        let rules = (0..self.rules).map(|_| count()).collect::<Result<_, _>>()?;
        let default = count()?;
        let mut malformed = [Count::default(); Malformed::ALL.len()];
        for reason in &mut malformed {
            *reason = count()?;
        }
        Ok(Counts {
            rules,
            default,
            malformed,
            full: count()?,
        })
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

fn configure(object: &mut OpenObject, image: &Image, rules: u32, buckets: u32) -> Result<(), Error> {
    let reasons = Malformed::ALL.len() as u32;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(".rodata") {
            let at = map.initial_value_mut().ok_or(Error::Missing(".rodata"))?;
            if at.len() != image.layout.len() {
                return Err(Error::Missing("layout of this version"));
            }
            at.copy_from_slice(&image.layout);
            continue;
        }
        let bytes = match name.as_str() {
            "words" => image.words.len() * 8,
            "nodes" => image.nodes.len() * 24,
            _ => 0,
        };
        if bytes > 0 {
            map.set_value_size(bytes as u32)
                .map_err(told("the XDP program's tables cannot be sized"))?;
        }
        let entries = match name.as_str() {
            "rules" => rules,
            "groups" => buckets,
            // The default, each reason, and what found no entry.
            "counts" => rules + 1 + reasons + 1,
            _ => 1,
        };
        map.set_max_entries(entries.max(1))
            .map_err(told("the XDP program's tables cannot be sized"))?;
    }
    Ok(())
}
