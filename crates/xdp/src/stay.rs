//! A filter that stays in force when its process ends: what is pinned of it, and how the next process goes on.
//!
//! Everything lies in one directory of the BPF file system, named after the network namespace and the interface's number:
//!
//! | pin | what |
//! |---|---|
//! | `link` | the program on the interface |
//! | `groups` | what rates know |
//! | `gN` | the counters of generation N |
//! | `state` | a map that holds [`State`] as JSON: what was counted by generations that are gone, and how those that count are spelled |
//!
//! `state` is replaced by one rename. A generation is named there before it is pinned, pinned before it is in force, and once
//! no packet meets it any more one rename adds its counts and takes its name away; then its pin goes. So every count is in
//! exactly one place whenever its process dies: a pin that `state` does not name is added up already, and a name without a
//! pin never was in force.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use rules::{Spelling, Totals, Verdict};

use crate::Error;
use crate::attach::{AttachError, Attached, InForce, Mode};
use crate::barrier::Barrier;
use crate::program::Shared;

pub use error::StayError;
use error::io_error;
pub(crate) use place::pin;
use place::{check_owner, dir, namespace, root};
pub(crate) use state::Old;
pub use state::State;
use state::{Counted, Named, VERSION, reasons};

mod error;
mod place;
mod state;
#[cfg(test)]
mod tests;

const LINK: &str = "link";
const GROUPS: &str = "groups";
const STATE: &str = "state";
const NEXT: &str = "next";

/// The pins of an interface's filter, and what they hold.
#[derive(Debug)]
pub(crate) struct Pins {
    dir: PathBuf,
    pub(crate) state: State,
}

/// A filter that stayed when its process ended, or may.
#[derive(Debug)]
pub struct Stayed {
    pub(crate) pins: Pins,
    pub(crate) attached: Option<Attached>,
    pub(crate) old: Vec<Old>,
    is_gone: bool,
}

/// What the user is told of a filter that stays.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The interface's name.
    pub interface: &'a str,
    /// The rule file.
    pub file: &'a str,
    /// The version of dropless.
    pub by: &'a str,
    /// Now, ms since 1970.
    pub now_unix_ms: u64,
}

impl Pins {
    /// Of an interface that has none.
    pub(crate) fn begin(index: u32, about: &About<'_>, shared: &Shared) -> Result<Self, StayError> {
        let dir = dir(index)?;
        let mut make = fs::DirBuilder::new();
        make.recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(io_error(&dir))?;
        // Whoever died before it had written the state left what belongs to nothing.
        for left in fs::read_dir(&dir).into_iter().flatten().flatten() {
            fs::remove_file(left.path()).map_err(io_error(&left.path()))?;
        }
        let pins = Self {
            state: State {
                version: VERSION,
                by: about.by.to_owned(),
                interface: about.interface.to_owned(),
                index,
                file: about.file.to_owned(),
                since_unix_ms: about.now_unix_ms,
                process: std::process::id(),
                buckets: shared.buckets,
                seed: shared.seed,
                ..State::default()
            },
            dir,
        };
        pin(shared.groups.as_fd(), &pins.dir.join(GROUPS))?;
        Ok(pins)
    }

    /// Says from now on that we put the rules in force.
    pub(crate) fn is_ours(&mut self, about: &About<'_>) {
        about.by.clone_into(&mut self.state.by);
        about.file.clone_into(&mut self.state.file);
        self.state.process = std::process::id();
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.dir.join(LINK)
    }

    fn generation(&self, number: u32) -> PathBuf {
        self.dir.join(format!("g{number}"))
    }

    /// A generation may be put in force once this has succeeded.
    pub(crate) fn announce(
        &mut self,
        number: u32,
        spellings: &[Spelling],
        counts: &MapHandle,
    ) -> Result<(), StayError> {
        let rules = spellings.iter();
        let rules = rules.map(|rule| (rule.text.clone(), rule.verdict == Verdict::Deny));
        self.state.generation = number;
        self.state.generations.push(Named {
            number,
            rules: rules.collect(),
            reasons: reasons(),
        });
        let done = self
            .write()
            .and_then(|()| pin(counts.as_fd(), &self.generation(number)));
        if done.is_err() {
            self.withdraw(number);
        }
        done
    }

    /// It was not put in force.
    pub(crate) fn withdraw(&mut self, number: u32) {
        self.state.generations.retain(|named| named.number != number);
        // Where that fails it is named and has counted nothing.
        let _ = self.write();
        let _ = fs::remove_file(self.generation(number));
    }

    /// No packet meets generations but `current` any more, and all that they counted is in `totals`.
    pub(crate) fn fold(&mut self, totals: &Totals, current: u32) -> Result<(), StayError> {
        let before = self.state.clone();
        self.state.generations.retain(|named| named.number == current);
        self.state.counted = Counted::of(totals);
        if let Err(error) = self.write() {
            self.state = before;
            return Err(error);
        }
        self.sweep();
        Ok(())
    }

    /// Removes pins that `state` does not name: they are added up.
    pub(crate) fn sweep(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let number = name
                .strip_prefix('g')
                .and_then(|number| number.parse::<u32>().ok());
            let is_named = |number: u32| self.state.generations.iter().any(|named| named.number == number);
            if number.is_some_and(|number| !is_named(number)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Puts the state in the place of the one before, in one rename.
    fn write(&self) -> Result<(), StayError> {
        let path = self.dir.join(STATE);
        let bad = |what: &'static str| {
            let path = path.clone();
            move |error: libbpf_rs::Error| io_error(&path)(io::Error::other(format!("{what}: {error}")))
        };
        let mut text =
            serde_json::to_vec(&self.state).map_err(|error| io_error(&path)(io::Error::other(error)))?;
        text.resize(text.len().next_multiple_of(8), b' ');
        let options = sys::bpf_map_create_opts {
            sz: size_of::<sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::Array, Some("state"), 4, text.len() as u32, 1, &options)
            .map_err(bad("it cannot be made"))?;
        map.update(&0_u32.to_ne_bytes(), &text, MapFlags::ANY)
            .map_err(bad("it cannot be written"))?;
        let next = self.dir.join(NEXT);
        let _ = fs::remove_file(&next);
        pin(map.as_fd(), &next)?;
        fs::rename(&next, &path).map_err(io_error(&path))
    }

    /// What is kept there, if anything.
    fn read(dir: &Path) -> Result<Option<State>, StayError> {
        let path = dir.join(STATE);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let damaged = |what: String| StayError::Damaged {
            path: path.clone(),
            what,
        };
        let map = MapHandle::from_pinned_path(&path).map_err(|error| damaged(error.to_string()))?;
        let text = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let text = text
            .map_err(|error| damaged(error.to_string()))?
            .unwrap_or_default();
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if value["version"]
            .as_u64()
            .is_some_and(|version| version > VERSION.into())
        {
            return Err(StayError::TooNew {
                by: word("by"),
                interface: word("interface"),
            });
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| damaged(error.to_string()))
    }

    /// Removes all of it.
    pub(crate) fn remove(&self) -> Result<(), StayError> {
        // The state last: without it nobody knows what the rest is.
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name() != STATE {
                fs::remove_file(entry.path()).map_err(io_error(&entry.path()))?;
            }
        }
        let _ = fs::remove_file(self.dir.join(STATE));
        fs::remove_dir(&self.dir).map_err(io_error(&self.dir))
    }

    /// What rates know, where it can be used further.
    pub(crate) fn shared(&self) -> Option<Shared> {
        let groups = MapHandle::from_pinned_path(self.dir.join(GROUPS)).ok()?;
        let is_usable = groups.max_entries() == self.state.buckets;
        is_usable.then_some(Shared {
            buckets: self.state.buckets,
            seed: self.state.seed,
            groups,
            samples: Vec::new(),
        })
    }

    /// Keeps this table of groups in the place of the one before. That of rules which are in force already: whoever dies before
    /// it is written down here leaves one that is not used.
    pub(crate) fn put_groups(&mut self, shared: &Shared) -> Result<(), StayError> {
        let (path, next) = (self.dir.join(GROUPS), self.dir.join(NEXT));
        let _ = fs::remove_file(&next);
        pin(shared.groups.as_fd(), &next)?;
        fs::rename(&next, &path).map_err(io_error(&path))?;
        (self.state.buckets, self.state.seed) = (shared.buckets, shared.seed);
        self.write()
    }

    /// What generations counted that are gone.
    pub(crate) fn counted(&self) -> Totals {
        self.state.counted.totals()
    }
}

impl Stayed {
    /// The filter that stays on this interface, or stayed until somebody took it off.
    pub fn on(index: u32) -> Result<Option<Self>, StayError> {
        Self::at(dir(index)?)
    }

    /// All of this network namespace, and why some of them cannot be read.
    pub fn all() -> Result<(Vec<Self>, Vec<StayError>), StayError> {
        let ours = format!("{}-", namespace()?);
        check_owner(&root())?;
        let (mut all, mut unread) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(root()).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(ours.as_bytes()) {
                match Self::at(entry.path()) {
                    Ok(found) => all.extend(found),
                    Err(error) => unread.push(error),
                }
            }
        }
        Ok((all, unread))
    }

    /// Those of an interface of this name that are in force no more: it may have gone, or have been made again, and then has
    /// another number.
    pub fn gone(name: &str) -> Result<Vec<Self>, StayError> {
        let (mut all, _) = Self::all()?;
        all.retain(|stayed| stayed.is_gone && stayed.pins.state.interface == name);
        Ok(all)
    }

    /// That of this program, wherever its interface was when it was put there: interfaces can be moved to another network
    /// namespace, and may get another number.
    pub fn of_program(program: u32) -> Result<Option<Self>, StayError> {
        check_owner(&root())?;
        for entry in fs::read_dir(root()).into_iter().flatten().flatten() {
            let Ok(Some(mut found)) = Self::at(entry.path()) else {
                continue;
            };
            let link = Attached::pinned(&found.pins.link(), found.pins.state.index).ok();
            if link.as_ref().and_then(Attached::program) == Some(program) {
                found.attached = link;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn at(dir: PathBuf) -> Result<Option<Self>, StayError> {
        let Some(state) = Pins::read(&dir)? else {
            return Ok(None);
        };
        let link = Attached::pinned(&dir.join(LINK), state.index).ok();
        let is_gone = link.as_ref().is_none_or(Attached::is_off);
        let attached = link.filter(Attached::is_in_force);
        let pins = Pins { dir, state };
        // What is named and not pinned never was in force.
        let old = pins.state.generations.iter().filter_map(|named| {
            let counts = MapHandle::from_pinned_path(pins.generation(named.number)).ok()?;
            Some(Old::new(named, counts))
        });
        Ok(Some(Self {
            old: old.collect(),
            attached,
            pins,
            is_gone,
        }))
    }

    /// What is known of it.
    pub fn state(&self) -> &State {
        &self.pins.state
    }

    /// Whether it is of this interface.
    pub fn is_on(&self, index: u32) -> bool {
        self.pins.state.index == index
    }

    /// Whether it is in force nowhere: somebody took it off, or its interface went.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether it is in force.
    pub fn is_in_force(&self) -> bool {
        self.attached.is_some()
    }

    /// In which mode.
    pub fn mode(&self) -> Option<Mode> {
        InForce::on(self.pins.state.index).ok()??.mode
    }

    /// What it counted so far.
    pub fn totals(&self) -> Result<Totals, Error> {
        let mut totals = self.pins.counted();
        for old in &self.old {
            old.add_to(&mut totals)?;
        }
        Ok(totals)
    }

    /// Takes it off the interface, and says what it counted, to the last packet.
    pub fn remove(self) -> Result<Totals, AttachError> {
        if let Some(attached) = &self.attached {
            attached.detach()?;
            Barrier::new()?.wait()?;
        }
        let totals = self.totals()?;
        self.pins.remove()?;
        Ok(totals)
    }
}
