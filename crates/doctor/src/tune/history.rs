//! The journal's records put together: of each thing that was changed, what it was, and what we made of it.

use super::journal::{Effect, Kind, Record};
use super::value::same;

/// A thing that was changed, once or several times.
pub struct History<'j> {
    pub kind: Kind,
    pub path: &'j str,
    pub old: Option<&'j str>,
    pub boot: &'j str,
    pub service: Option<&'j str>,
    /// What of the old value was in effect.
    pub effect: Option<&'j Effect>,
    /// What we made of it: as it was written, and as it was read back.
    pub ours: Vec<Option<&'j str>>,
    /// The last change was written down, and what became of it was not: we were killed in the middle of it.
    pub torn: bool,
    pub records: Vec<&'j Record>,
    /// It could not be taken back.
    pub left: bool,
}

/// What was changed several times is one history, from what it was at first: undo may be killed and begin again.
pub fn fold(records: &[Record]) -> Vec<History<'_>> {
    let mut trails: Vec<History<'_>> = Vec::new();
    for record in records {
        let of_it = |history: &&mut History<'_>| {
            let kind = record.kind == Kind::Took || record.kind == history.kind;
            kind && history.path == record.path && (history.boot == record.boot || !history.is_volatile())
        };
        let history = trails.iter_mut().rfind(of_it);
        match (history, record.kind) {
            (Some(history), kind) => {
                if kind != Kind::Took && history.is_foreign(record.old.as_deref()) {
                    history.old = record.old.as_deref();
                    history.effect = record.effect.as_ref();
                }
                history.ours.push(record.new.as_deref());
                history.torn = kind != Kind::Took;
                history.records.push(record);
            }
            (None, Kind::Took) => {}
            (None, kind) => trails.push(History {
                kind,
                path: &record.path,
                old: record.old.as_deref(),
                boot: &record.boot,
                service: record.service.as_deref(),
                effect: record.effect.as_ref(),
                ours: vec![record.new.as_deref()],
                torn: true,
                records: vec![record],
                left: false,
            }),
        }
    }
    trails
}

impl History<'_> {
    /// Whether it held what neither we nor the first owner gave it when we came again: somebody else's is restored then.
    fn is_foreign(&self, held: Option<&str>) -> bool {
        let equal = |one: Option<&str>| same(one.unwrap_or_default(), held.unwrap_or_default());
        let kept = self.torn || !matches!(self.kind, Kind::Value | Kind::File);
        !kept && !equal(self.old) && !self.ours.iter().any(|ours| equal(*ours))
    }

    /// Whether a reboot resets it.
    pub fn is_volatile(&self) -> bool {
        let kernels = ["/proc/", "/sys/", "/dev/"];
        self.kind == Kind::Module || kernels.iter().any(|start| self.path.starts_with(start))
    }
}
