//! What is usual: taken up from a file, and left there for the next time.

use std::path::Path;

use anyhow::{Context as _, Result};
use guard::Guard;
use measure::Note;
use report::ours;

use crate::about::About as _;

/// Takes up what was usual the last time. A file that was damaged is set aside, and all is learned anew, as a note says: a
/// guard that never started again would be the greater harm. What is no such file is refused, and stays where it is.
pub fn take_up(guard: &mut Guard, path: &Path) -> Result<Option<Note>> {
    let text = report::input::text_file(path)
        .with_context(|| format!("--baseline {}", path.display()))
        .about("--baseline")?;
    let why = match learn(guard, &text) {
        Ok(()) => return Ok(None),
        Err(why) => why.context(format!("--baseline {} is none", path.display())),
    };
    if !may_be_one(&text) {
        return Err(why).about("--baseline");
    }
    let then = match set_aside(path) {
        Ok(aside) => format!("it is now {aside}"),
        Err(error) => format!("it stays there ({error})"),
    };
    let text = format!("{why:#}; {then}, and what is usual is learned anew");
    Ok(Some(Note::new("baseline_damaged", text)))
}

fn learn(guard: &mut Guard, text: &str) -> Result<()> {
    let baseline = serde_json::from_str(text)?;
    guard.learn(&baseline).map_err(anyhow::Error::msg)
}

/// Whether it may be one that was cut, or whose bytes were lost to a crash of the system (they are 0 then): only such a file
/// is taken out of the way.
fn may_be_one(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    rest.is_empty() || rest.starts_with('{')
}

fn set_aside(path: &Path) -> std::io::Result<String> {
    let path = ours::landing(path)?;
    let mut aside = path.clone().into_os_string();
    aside.push(".damaged");
    std::fs::rename(&path, &aside)?;
    Ok(Path::new(&aside).display().to_string())
}

/// Leaves what is usual for the next time: whole, or as it was before.
pub fn keep(path: &Path, guard: &Guard) -> Result<()> {
    let text = report::json::pretty(&guard.baseline())?;
    report::atomic::write(path, text.as_bytes())
        .with_context(|| format!("--baseline {}", path.display()))
        .about("--baseline")
}

#[cfg(test)]
mod tests {
    use super::*;
    use guard::Settings;

    fn guard() -> Guard {
        Guard::new(Settings::default(), 1)
    }

    #[test]
    fn what_was_damaged_is_set_aside_and_what_is_no_baseline_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("usual.json");
        let aside = dir.path().join("usual.json.damaged");
        keep(&path, &guard()).expect("written");
        let whole = std::fs::read_to_string(&path).expect("text");
        assert_eq!(take_up(&mut guard(), &path).expect("whole"), None);
        let wrong = r#"{"version":1,"destinations":[{"prefix":"nobody","learned_ns":1,"classes":[]}]}"#;
        for damaged in ["", "\0\0\0\0", &whole[..whole.len() / 2], wrong] {
            std::fs::write(&path, damaged).expect("a file");
            let note = take_up(&mut guard(), &path).expect("a guard").expect("a note");
            assert_eq!(note.code, "baseline_damaged");
            assert!(note.text.contains("usual.json.damaged"), "{}", note.text);
            assert_eq!(std::fs::read_to_string(&aside).expect("text"), damaged);
            assert!(!path.exists());
        }
        std::fs::write(&path, "deny udp\n").expect("a file");
        let error = take_up(&mut guard(), &path).expect_err("rules are none");
        assert!(format!("{error:#}").contains("is none"), "{error:#}");
        assert!(path.exists());
    }

    #[test]
    fn what_cannot_be_kept_leaves_what_was_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("usual.json");
        std::fs::write(&path, "before").expect("a file");
        // In the way of the file that is written first.
        std::fs::create_dir(dir.path().join(".usual.json.tmp")).expect("a directory");
        assert!(keep(&path, &guard()).is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "before");
    }
}
