//! Takes back what the journal says was done: only what still is as we left it, and only what this boot still has.

use std::io;
use std::path::{Path, PathBuf};

use super::binding;
use super::history::{History, fold};
use super::journal::{Journal, Kind, Record, boot_id};
use super::kernel::Kernel;
use super::undone::Undone;
use super::value::{same, writable};
use host::Problem;
use host::modules::is_loaded;

/// Takes everything back, the last first. Each path comes with what became of it.
pub fn undo(kernel: &dyn Kernel, journal: Journal) -> Result<Vec<(String, Undone)>, Problem> {
    let boot = boot_id(kernel.sys());
    let mut report = Vec::new();
    let mut trails = fold(journal.records());
    for history in trails.iter_mut().rev() {
        let undone = if history.boot != boot && history.is_volatile() {
            Undone::Rebooted
        } else {
            history.take_back(kernel)
        };
        history.left = matches!(undone, Undone::Refused { .. });
        report.push((history.path.to_owned(), undone));
    }
    // In the order in which they were made, so that another undo goes backwards through them again.
    let left = trails.iter().filter(|history| history.left);
    let left: Vec<Record> = left
        .flat_map(|history| &history.records)
        .copied()
        .cloned()
        .collect();
    journal.end(&left)?;
    Ok(report)
}

impl History<'_> {
    fn take_back(&self, kernel: &dyn Kernel) -> Undone {
        match self.kind {
            Kind::Value => self.value(kernel),
            Kind::File => self.file(kernel),
            Kind::Directory => self.directory(kernel),
            Kind::Controller => self.controller(kernel),
            Kind::Driver => binding::give_back(kernel, self.path, self.old, self.ours[0]),
            Kind::Module => self.module(kernel),
            Kind::Took => Undone::AsItWas,
        }
    }

    fn value(&self, kernel: &dyn Kernel) -> Undone {
        let old = self.old.unwrap_or_default();
        let now = match kernel.read(self.path) {
            Ok(now) => now,
            // A device that was taken out has taken its files along.
            Err(error) => return gone(kernel, self.path, &error),
        };
        if same(&now, old) {
            return Undone::AsItWas;
        }
        // Torn: the kernel may have made something else of what we wrote, such as half of the hugepages.
        let is_ours = self.torn || self.ours.iter().flatten().any(|ours| same(&now, ours));
        // An undo that was killed on the way left that.
        let is_ours = is_ours || self.effect.is_some_and(|effect| same(&now, &effect.old));
        if !is_ours {
            return Undone::Foreign { now };
        }
        if let Some(effect) = self.effect.filter(|effect| !effect.old.is_empty()) {
            // An interrupt stays where it is as long as it may: it is called back before it is let go. Where the kernel
            // refuses that it goes where the kernel likes it, as always.
            let _ = kernel.write(self.path, writable(&effect.old));
        }
        if let Err(error) = kernel.write(self.path, writable(old)) {
            return Undone::refused(error.to_string());
        }
        match kernel.read(self.path) {
            Ok(now) if same(&now, old) => Undone::restored(&self.restored(kernel, old)),
            Ok(now) => Undone::refused(format!("'{}' was written, and it reads '{now}'", writable(old))),
            Err(error) => Undone::refused(error.to_string()),
        }
    }

    /// What a restored value is, and what of it is in effect where that is not what was.
    fn restored(&self, kernel: &dyn Kernel, old: &str) -> String {
        let old = writable(old);
        let Some(effect) = self.effect else {
            return old.into();
        };
        match kernel.read(&effect.path) {
            Ok(now) if !same(&now, &effect.old) => {
                format!(
                    "{old} (in effect on {}, {} before)",
                    writable(&now),
                    writable(&effect.old)
                )
            }
            _ => old.into(),
        }
    }

    fn file(&self, kernel: &dyn Kernel) -> Undone {
        kernel.sweep(self.path);
        let now = match kernel.text(self.path) {
            Ok(now) => now,
            Err(error) => return Undone::refused(error.to_string()),
        };
        if now.as_deref() == self.old {
            // An undo that was killed may have come no further than the text.
            return self.restart(kernel).unwrap_or(Undone::AsItWas);
        }
        if !self.ours.contains(&now.as_deref()) {
            return Undone::Foreign {
                now: if now.is_some() { "another text" } else { "nothing" }.into(),
            };
        }
        if let Err(error) = kernel.replace(self.path, self.old) {
            return Undone::refused(error.to_string());
        }
        let restored = || Undone::restored(self.old.map_or("no file", |_| "its old text"));
        self.restart(kernel).unwrap_or_else(restored)
    }

    /// Has the service that reads the file read it; what there is to say where it cannot.
    fn restart(&self, kernel: &dyn Kernel) -> Option<Undone> {
        let error = kernel.run("systemctl", &["restart", self.service?]).err()?;
        Some(Undone::stays(format!(
            "its text is back, but the service did not start again: {error}"
        )))
    }

    fn directory(&self, kernel: &dyn Kernel) -> Undone {
        if !kernel.sys().exists(self.path) {
            return gone(kernel, self.path, &io::ErrorKind::NotFound.into());
        }
        match kernel.remove_directory(self.path) {
            Ok(()) => Undone::restored("no directory"),
            Err(error) if self.is_volatile() => Undone::refused(format!("a run is still in it ({error})")),
            Err(error) => Undone::stays(format!("others use it ({error})")),
        }
    }

    fn controller(&self, kernel: &dyn Kernel) -> Undone {
        let name = self.ours[0].unwrap_or_default();
        let has = |list: &str| list.split_whitespace().any(|word| word == name);
        let on = |kernel: &dyn Kernel| has(&kernel.read(self.path).unwrap_or_default());
        match kernel.read(self.path) {
            Ok(list) if has(&list) => {}
            Ok(_) => return Undone::AsItWas,
            Err(error) => return gone(kernel, self.path, &error),
        }
        match kernel.write(self.path, &format!("-{name}")) {
            Ok(()) if !on(kernel) => Undone::restored("switched off"),
            Ok(()) => Undone::refused("it is still switched on"),
            Err(error) => Undone::stays(format!("others use it ({error})")),
        }
    }

    fn module(&self, kernel: &dyn Kernel) -> Undone {
        if !is_loaded(kernel.sys(), self.path) {
            return Undone::AsItWas;
        }
        match kernel.run("modprobe", &["-r", self.path]) {
            Ok(()) => Undone::restored("not loaded"),
            Err(error) => Undone::stays(format!("it is in use ({error})")),
        }
    }
}

/// What cannot be read: gone with what it belonged to, so that nothing is left to take back; or only out of our sight, as
/// what is not mounted in a container or in a network namespace is.
fn gone(kernel: &dyn Kernel, path: &str, error: &io::Error) -> Undone {
    let sys = kernel.sys();
    let hidden = |why: String| Undone::refused(format!("{why}: undo it where dropless tune was run"));
    if error.kind() != io::ErrorKind::NotFound {
        return hidden(error.to_string());
    }
    let is_below = |root: &String| Path::new(path).starts_with(root);
    if is_below(&"/sys/fs/cgroup".into()) && !sys.mounts("cgroup2").iter().any(is_below) {
        return hidden("cgroup v2 is not mounted here".into());
    }
    // `/proc/sys`, `/sys/devices`: not there where the file system is not.
    let top: PathBuf = Path::new(path).components().take(3).collect();
    if !sys.exists(&top) {
        return hidden(format!("there is no {} here", top.display()));
    }
    let of_the_network = Path::new(path).components().any(|part| part.as_os_str() == "net");
    if of_the_network && sys.link_name("/proc/self/ns/net") != sys.link_name("/proc/1/ns/net") {
        return hidden("this is another network namespace".into());
    }
    Undone::AsItWas
}
