//! What is usual: taken up from a file, and left there for the next time.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};
use guard::{Baseline, Guard};
use measure::Note;
use nix::unistd::{AccessFlags, access};
use report::ours;
use serde::de::IgnoredAny;

use crate::about::About as _;

/// Takes up what was usual the last time. In the place of a file that was damaged all is learned anew, as a note says: a
/// guard that never started again would be the greater harm. What is no such file is refused.
pub fn take_up(guard: &mut Guard, path: &Path) -> Result<Option<Note>> {
    let text = report::input::text_file(path)
        .map_err(|error| {
            let (path, why) = (path.display(), error.without_path());
            anyhow!("--baseline {path}: {why}; name a file that an earlier guard left, or none yet")
        })
        .about("--baseline")?;
    let why = match learn(guard, &text) {
        Ok(()) => return Ok(None),
        Err(why) => why.context(format!("--baseline {} is none", path.display())),
    };
    if !is_damaged(&text) {
        return Err(why).about("--baseline");
    }
    let aside = aside(path);
    let text = format!(
        "{why:#}; what is usual is learned anew, and once that is kept the damaged file is {}",
        aside.display()
    );
    Ok(Some(Note::new("baseline_damaged", text)))
}

/// Refuses a place that nothing can be left in: better than after a week of learning.
pub fn check_place(path: &Path) -> Result<()> {
    let landing = ours::landing(path).unwrap_or_else(|_| path.to_owned());
    let named = landing.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = named.unwrap_or(Path::new("."));
    access(directory, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|cause| {
            let (path, directory) = (path.display(), directory.display());
            anyhow!(
                "--baseline {path}: nothing can be left in {directory}: {}; name another place",
                cause.desc()
            )
        })
        .about("--baseline")
}

fn learn(guard: &mut Guard, text: &str) -> Result<()> {
    let baseline = serde_json::from_str(text)?;
    guard.learn(&baseline).map_err(anyhow::Error::msg)
}

/// Whether it may be one that was cut, or whose bytes were lost to a crash of the system (they are 0 then). Whatever is whole
/// is something else: such as a summary, which nobody wants to be replaced.
fn is_damaged(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    rest.is_empty() || rest.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_err()
}

fn aside(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    aside.into()
}

/// Leaves what is usual for the next time: whole, or as it was before. What was damaged gets another name only now, when it
/// is replaced; an earlier one that has this name keeps it.
fn keep(path: &Path, baseline: &Baseline) -> Result<()> {
    if report::input::text_file(path).is_ok_and(|text| is_damaged(&text)) {
        // Where it cannot have a second name it is of less use than what takes its place.
        let _ = ours::landing(path).and_then(|landing| std::fs::hard_link(landing, aside(path)));
    }
    let text = report::json::pretty(baseline)?;
    report::atomic::write(path, text.as_bytes())
        .with_context(|| format!("--baseline {}", path.display()))
        .about("--baseline")
}

/// From one time that it is kept to the next; ns.
const EVERY_NS: u64 = 60_000_000_000;

/// Keeps what is usual now and then, so that who kills the guard takes little of it, and at its end. A thread of its own writes:
/// the guard waits for no disk.
#[derive(Debug, Default)]
pub struct Keeper {
    path: Option<PathBuf>,
    next_ns: u64,
    writing: Option<JoinHandle<Result<()>>>,
    has_failed: bool,
}

impl Keeper {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// Keeps it, where it is time to; what is to be said of an earlier time that failed, once.
    pub fn look(&mut self, guard: &Guard, now_ns: u64) -> Option<String> {
        let path = self.path.as_ref()?;
        let written = self.writing.take_if(|writing| writing.is_finished());
        let error = written.and_then(|writing| writing.join().ok()?.err());
        let said = error.filter(|_| !std::mem::replace(&mut self.has_failed, true));
        // Before, a successor would take the busiest sources for strangers.
        if guard.judges_sources() && now_ns >= self.next_ns && self.writing.is_none() {
            self.next_ns = now_ns + EVERY_NS;
            let (path, baseline) = (path.clone(), guard.baseline());
            let write = move || keep(&path, &baseline);
            // Where there is no room for a thread there may be a minute later.
            self.writing = std::thread::Builder::new().name("keep".into()).spawn(write).ok();
        }
        said.map(|error| format!("what is usual is not kept: {error:#}"))
    }

    /// The same at the end of a guard, whose result is worth more than that.
    pub fn finish(&mut self, guard: &Guard) -> Option<Note> {
        // What is older must not be written last.
        let _ = self.writing.take().map(JoinHandle::join);
        let error = keep(self.path.as_ref()?, &guard.baseline()).err()?;
        Some(Note::new("baseline_not_kept", format!("{error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guard::Settings;

    fn guard() -> Guard {
        Guard::new(Settings::default(), 1)
    }

    /// One that knows sources from its start.
    fn acquainted() -> Guard {
        let known = r#"{"version":1,"destinations":[],"sources":[{"prefix":"10.0.0.1","learned_ns":60000000000,"classes":[]}]}"#;
        let mut guard = guard();
        guard
            .learn(&serde_json::from_str(known).expect("a baseline"))
            .expect("learned");
        guard
    }

    #[test]
    fn what_was_damaged_is_set_aside_and_what_is_no_baseline_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("usual.json");
        let text = |path: &Path| std::fs::read_to_string(path).expect("text");
        keep(&path, &guard().baseline()).expect("written");
        let whole = text(&path);
        assert_eq!(take_up(&mut guard(), &path).expect("whole"), None);
        let aside = aside(&path);
        for damaged in ["", "\0\0\0\0", &whole[..whole.len() / 2]] {
            std::fs::write(&path, damaged).expect("a file");
            let note = take_up(&mut guard(), &path).expect("a guard").expect("a note");
            assert_eq!(note.code, "baseline_damaged");
            assert!(note.text.contains("usual.json.damaged"), "{}", note.text);
            assert_eq!(text(&path), damaged, "the start may still fail");
            keep(&path, &guard().baseline()).expect("written");
            assert_eq!((text(&path), text(&aside)), (whole.clone(), damaged.to_owned()));
            std::fs::remove_file(&aside).expect("removed");
        }
        std::fs::write(&aside, "earlier").expect("a file");
        std::fs::write(&path, "{").expect("a file");
        keep(&path, &guard().baseline()).expect("written");
        assert_eq!(text(&aside), "earlier");
        let wrong = r#"{"version":1,"destinations":[{"prefix":"nobody","learned_ns":1,"classes":[]}]}"#;
        for other in ["deny udp\n", r#"{"version":1,"run":"runs/x"}"#, wrong] {
            std::fs::write(&path, other).expect("a file");
            let error = take_up(&mut guard(), &path).expect_err("none");
            assert!(format!("{error:#}").contains("is none"), "{error:#}");
            assert_eq!(text(&path), other);
        }
    }

    #[test]
    fn what_cannot_be_kept_leaves_what_was_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("usual.json");
        std::fs::write(&path, "before").expect("a file");
        // In the way of the file that is written first.
        std::fs::create_dir(dir.path().join(".usual.json.tmp")).expect("a directory");
        assert!(keep(&path, &guard().baseline()).is_err());
        let mut keeper = Keeper::new(Some(path.clone()));
        let note = keeper.finish(&guard()).expect("a note");
        assert_eq!(note.code, "baseline_not_kept");
        assert!(note.text.contains("--baseline "), "{}", note.text);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "before");
    }

    #[test]
    fn it_is_kept_once_sources_are_known_and_each_minute() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("usual.json");
        let mut keeper = Keeper::new(Some(path.clone()));
        assert_eq!(keeper.look(&guard(), 99_000_000_000), None);
        assert!(keeper.writing.is_none(), "no source is known yet");
        let guard = acquainted();
        let mut is_kept = |second: u64| {
            let said = keeper.look(&guard, second * 1_000_000_000);
            let written = keeper
                .writing
                .take()
                .map(|writing| writing.join().expect("a thread"));
            assert_eq!((said, written.as_ref().is_none_or(Result::is_ok)), (None, true));
            written.is_some()
        };
        let kept: Vec<u64> = (100..300).filter(|second| is_kept(*second)).collect();
        assert_eq!(kept, [100, 160, 220, 280]);
        take_up(&mut acquainted(), &path).expect("a baseline");
        // In the way of the file that is written first.
        std::fs::create_dir(dir.path().join(".usual.json.tmp")).expect("a directory");
        let mut said = Vec::new();
        for second in (340..1000).step_by(60) {
            said.extend(keeper.look(&guard, second * 1_000_000_000));
            while keeper
                .writing
                .as_ref()
                .is_some_and(|writing| !writing.is_finished())
            {
                std::thread::yield_now();
            }
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("what is usual is not kept: --baseline "),
            "{said:?}"
        );
    }
}
