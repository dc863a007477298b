//! Takes back what the journal says was done: only what still is as we left it, and only what this boot still has.

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
        // A device that was taken out has taken its files along.
        let Ok(now) = kernel.read(self.path) else {
            return Undone::AsItWas;
        };
        if same(&now, old) {
            return Undone::AsItWas;
        }
        // Torn: the kernel may have made something else of what we wrote, such as half of the hugepages.
        let is_ours = self.torn || self.ours.iter().flatten().any(|ours| same(&now, ours));
        if !is_ours {
            return Undone::Foreign { now };
        }
        if let Err(error) = kernel.write(self.path, writable(old)) {
            return Undone::refused(error.to_string());
        }
        match kernel.read(self.path) {
            Ok(now) if same(&now, old) => Undone::restored(writable(old)),
            Ok(now) => Undone::refused(format!("'{}' was written, and it reads '{now}'", writable(old))),
            Err(error) => Undone::refused(error.to_string()),
        }
    }

    fn file(&self, kernel: &dyn Kernel) -> Undone {
        kernel.sweep(self.path);
        let now = match kernel.text(self.path) {
            Ok(now) => now,
            Err(error) => return Undone::refused(error.to_string()),
        };
        if now.as_deref() == self.old {
            return Undone::AsItWas;
        }
        if !self.ours.contains(&now.as_deref()) {
            return Undone::Foreign {
                now: if now.is_some() { "another text" } else { "nothing" }.into(),
            };
        }
        if let Err(error) = kernel.replace(self.path, self.old) {
            return Undone::refused(error.to_string());
        }
        if let Some(Err(error)) = self
            .service
            .map(|name| kernel.run("systemctl", &["restart", name]))
        {
            return Undone::stays(format!(
                "its text is back, but the service did not start again: {error}"
            ));
        }
        Undone::restored(self.old.map_or("no file", |_| "its old text"))
    }

    fn directory(&self, kernel: &dyn Kernel) -> Undone {
        if !kernel.sys().exists(self.path) {
            return Undone::AsItWas;
        }
        match kernel.remove_directory(self.path) {
            Ok(()) => Undone::restored("no directory"),
            Err(error) if self.is_volatile() => Undone::refused(format!("a run is still in it ({error})")),
            Err(error) => Undone::stays(format!("others use it ({error})")),
        }
    }

    fn controller(&self, kernel: &dyn Kernel) -> Undone {
        let name = self.ours[0].unwrap_or_default();
        let on = |kernel: &dyn Kernel| {
            let list = kernel.read(self.path).unwrap_or_default();
            list.split_whitespace().any(|word| word == name)
        };
        if !on(kernel) {
            return Undone::AsItWas;
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
