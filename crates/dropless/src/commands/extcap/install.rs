//! Puts a script into Wireshark's directory of extcap programs.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};
use report::out;

/// What the script is called there.
const NAME: &str = "dropless";
/// Stands in every script of ours.
const MARK: &str = "# Written by `dropless extcap --install`.";

/// Installs the script into `dir` or where Wireshark looks, or takes it away.
pub fn run(dir: Option<&Path>, installs: bool) -> Result<u8> {
    let dir = dir.map_or_else(directory, |dir| Ok(dir.to_owned()))?;
    let path = dir.join(NAME);
    let named = || path.display().to_string();
    match fs::read(&path) {
        Ok(bytes) if is_ours(&bytes) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ensure!(installs, "{} is not there: nothing is installed", named());
        }
        // What cannot be read cannot be known as ours.
        _ => bail!(
            "{} is there and not ours; remove it, or give another --dir",
            named()
        ),
    }
    let denied = |error: std::io::Error| {
        anyhow!(
            "cannot change {}: {error}; use sudo, or a directory of your own: --dir",
            named()
        )
    };
    if !installs {
        fs::remove_file(&path).map_err(denied)?;
        out::print_stdout(&format!("removed {}\n", named()))?;
        return Ok(0);
    }
    let program = std::env::current_exe().context("where this program is")?;
    fs::create_dir_all(&dir).map_err(denied)?;
    // What is there may run just now, or be a link: the new one takes its place.
    let beside = dir.join(format!(".{NAME}-{}", std::process::id()));
    let written = fs::write(&beside, script(&program))
        .and_then(|()| fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&beside, &path));
    written
        .inspect_err(|_| drop(fs::remove_file(&beside)))
        .map_err(denied)?;
    let text = format!("installed {}: tshark -D lists what can be captured\n", named());
    out::print_stdout(&text)?;
    Ok(0)
}

/// Whether a file is a script of ours: this program, too, holds the mark, but not in its second line.
fn is_ours(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.nth(1) == Some(MARK.as_bytes())
}

fn script(program: &Path) -> String {
    let quoted = program.display().to_string().replace('\'', "'\\''");
    format!("#!/bin/sh\n{MARK}\nexec '{quoted}' extcap \"$@\"\n")
}

/// Where Wireshark looks: the user's own directory, where its version has one (4.2), else that of all users.
fn directory() -> Result<PathBuf> {
    let folders = ["tshark", "wireshark"].iter().find_map(|program| {
        let output = Command::new(program).args(["-G", "folders"]).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let told = folders.as_deref().and_then(extcap_of);
    let own = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/lib/wireshark/extcap"));
    told.or_else(own).context("no HOME is set; say where with --dir")
}

/// The directory in what `tshark -G folders` prints.
fn extcap_of(folders: &str) -> Option<PathBuf> {
    let value = |name: &str| {
        let mut lines = folders.lines();
        lines.find_map(|line| Some(PathBuf::from(line.strip_prefix(name)?.trim())))
    };
    value("Personal Extcap path:").or_else(|| value("Extcap path:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_directory_goes_first() {
        let old = "Temp:\t/tmp\nExtcap path:         \t/usr/lib/wireshark/extcap\n";
        assert_eq!(extcap_of(old), Some("/usr/lib/wireshark/extcap".into()));
        let new = "Personal Extcap path:\t/home/a/.local/lib/wireshark/extcap\nGlobal Extcap path:\t/usr/x\n";
        assert_eq!(extcap_of(new), Some("/home/a/.local/lib/wireshark/extcap".into()));
        assert_eq!(extcap_of("Temp:\t/tmp\n"), None);
    }

    #[test]
    fn a_script_survives_any_path() {
        let text = script(Path::new("/opt/it's here/dropless"));
        assert!(
            text.contains("exec '/opt/it'\\''s here/dropless' extcap \"$@\"\n"),
            "{text}"
        );
    }
}
