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
    out::print_stdout(&installed(&named(), &dir, folders().as_deref()))?;
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

/// What is said at the end: whether Wireshark will find it, who would be told of success otherwise.
fn installed(named: &str, dir: &Path, folders: Option<&str>) -> String {
    let Some(folders) = folders else {
        return format!(
            "installed {named}; no tshark is here that says where it looks: its folders are in `tshark -G folders`\n"
        );
    };
    let same = |other: &Path| match (dir.canonicalize(), other.canonicalize()) {
        (Ok(dir), Ok(other)) => dir == other,
        _ => dir == other,
    };
    if extcap_folders(folders).iter().any(|folder| same(folder)) {
        format!("installed {named}: tshark -D lists what can be captured\n")
    } else {
        let looks = extcap_folders(folders)
            .iter()
            .map(|folder| folder.display().to_string())
            .collect::<Vec<_>>()
            .join(" and ");
        format!(
            "installed {named}, where the tshark of this user does not look: it does in {looks}, where it is installed without --dir; who is not root can set WIRESHARK_EXTCAP_DIR={}\n",
            dir.display()
        )
    }
}

/// Where Wireshark looks: the user's own directory, where its version has one (4.2), else that of all users.
fn directory() -> Result<PathBuf> {
    let told = folders().as_deref().and_then(extcap_of);
    let own = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/lib/wireshark/extcap"));
    told.or_else(own).context("no HOME is set; say where with --dir")
}

/// What `tshark -G folders` prints.
fn folders() -> Option<String> {
    ["tshark", "wireshark"].iter().find_map(|program| {
        let output = Command::new(program).args(["-G", "folders"]).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

/// The directory to install into, of what `tshark -G folders` prints.
fn extcap_of(folders: &str) -> Option<PathBuf> {
    extcap_folders(folders).into_iter().next()
}

/// All where extcap programs are looked for, of what `tshark -G folders` prints: the user's own first.
fn extcap_folders(folders: &str) -> Vec<PathBuf> {
    let names = ["Personal Extcap path:", "Extcap path:", "Global Extcap path:"];
    let value = |name: &&str| {
        let mut lines = folders.lines();
        lines.find_map(|line| Some(PathBuf::from(line.strip_prefix(*name)?.trim())))
    };
    names.iter().filter_map(value).collect()
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
    fn a_directory_where_tshark_does_not_look_is_told() {
        let folders = "Personal Extcap path:\t/home/a/extcap\nGlobal Extcap path:\t/usr/x\n";
        let said = |dir: &str| installed(&format!("{dir}/dropless"), Path::new(dir), Some(folders));
        for dir in ["/home/a/extcap", "/usr/x"] {
            assert!(
                said(dir).ends_with(": tshark -D lists what can be captured\n"),
                "{dir}"
            );
        }
        let elsewhere = said("/tmp/mine");
        assert!(
            elsewhere.contains("does not look: it does in /home/a/extcap and /usr/x"),
            "{elsewhere}"
        );
        assert!(!elsewhere.contains("tshark -D"), "{elsewhere}");
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
