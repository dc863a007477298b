//! Makes the isolated cpuset partition.

use std::io;

use host::Problem;
use host::cores::CoreSet;
use host::partition::{NAME, root};

use super::journal::Kind;
use super::operator::{Operator, Outcome};
use super::value::same;

impl Operator<'_> {
    /// `cores` shall be a partition of their own.
    pub(super) fn partition(&mut self, cores: &CoreSet) -> Result<Outcome, Problem> {
        let root = match root(self.kernel.sys()) {
            Ok(root) => root,
            Err(why) => return Ok(Outcome::refused(why)),
        };
        if let Err(error) = self.controller(&format!("{root}/cgroup.subtree_control"), "cpuset")? {
            return Ok(Outcome::refused(format!("no cpuset below the root: {error}")));
        }
        let group = format!("{root}/{NAME}");
        if let Err(error) = self.directory(&group)? {
            return Ok(Outcome::refused(error.to_string()));
        }
        if let Err(error) = self.threaded(&format!("{group}/cgroup.type")) {
            return Ok(Outcome::refused(format!("cgroup.type: {error}")));
        }
        let (file, wanted) = (format!("{group}/cpuset.cpus"), cores.to_string());
        let is_so = self.kernel.read(&file).is_ok_and(|now| same(&now, &wanted));
        let threads = self.kernel.read(&format!("{group}/cgroup.threads"));
        if !is_so && threads.is_ok_and(|threads| !threads.is_empty()) {
            // Kernels before 6.2 forget then which core each thread was bound to (kernel/cgroup/cpuset.c).
            let why = "a run goes on in the partition, which gets no other cores meanwhile; end it first";
            return Ok(Outcome::refused(why));
        }
        let given = self.value(&file, &wanted, None)?;
        if let Outcome::Refused { why } = given {
            return Ok(Outcome::refused(format!("cpuset.cpus: {why}")));
        }
        // Where it cannot be, the kernel takes the word and says "isolated invalid", with the reason.
        self.value(&format!("{group}/cpuset.cpus.partition"), "isolated", None)
    }

    /// Threads of one process may then be in it and others not. There is no way back but to remove the directory.
    fn threaded(&self, path: &str) -> io::Result<()> {
        if self.kernel.read(path).is_ok_and(|now| now == "threaded") {
            return Ok(());
        }
        self.kernel.write(path, "threaded")
    }

    fn controller(&mut self, path: &str, name: &str) -> Result<io::Result<()>, Problem> {
        let list = self.kernel.read(path).unwrap_or_default();
        if list.split_whitespace().any(|word| word == name) {
            return Ok(Ok(()));
        }
        self.journal.before(Kind::Controller, path, None, Some(name))?;
        let written = self.kernel.write(path, &format!("+{name}"));
        self.journal.took(path, Some(name))?;
        Ok(written)
    }
}
