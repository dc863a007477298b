//! What `./dev package` and `./dev install` lay out, of the program that all tests run: whole, and usable as it lies there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_dropless");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `./dev ARGUMENTS`, which ends well; what it is built into lies below `folder`, and so does where it is called.
fn dev(folder: &Path, arguments: &[&str]) -> String {
    stdout(&ends(folder, arguments))
}

/// The same, however it ends.
fn ends(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("./dev")
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(root().canonicalize().unwrap().join("dev"));
    command.args(arguments).current_dir(folder);
    // Packing costs ten times what the rest does, and is dpkg's.
    command.env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    command.env("CARGO_TARGET_DIR", ".");
    command
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect(program)
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// All files below `folder`, by their names from there.
fn files(folder: &Path) -> BTreeSet<String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeSet::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// The commands that have a page of help, as their manual pages are called.
fn commands() -> BTreeSet<String> {
    let pages = files(&root().join("docs/help"));
    let pages = pages.iter().map(|page| page.trim_end_matches(".txt"));
    let names = pages.map(|page| match page {
        "dropless" => page.to_owned(),
        page => format!("dropless-{page}"),
    });
    names.collect()
}

fn units() -> BTreeSet<String> {
    files(&root().join("contrib/systemd"))
}

/// What must lie below a prefix; completions of zsh lie below `zsh`.
fn wanted(zsh: &str) -> BTreeSet<String> {
    let pages = commands().into_iter();
    let pages = pages.map(|name| format!("share/man/man1/{name}.1.gz"));
    let units = units()
        .into_iter()
        .map(|name| format!("lib/systemd/system/{name}"));
    let others = [
        "bin/dropless",
        "share/bash-completion/completions/dropless",
        "share/fish/vendor_completions.d/dropless.fish",
        "share/doc/dropless/copyright",
        "share/doc/dropless/changelog.gz",
        "share/doc/dropless/crates.txt",
        "share/doc/dropless/guide/send.md",
    ];
    let zsh = format!("share/zsh/{zsh}/_dropless");
    let others = others.map(str::to_owned).into_iter().chain([zsh]);
    others.chain(pages).chain(units).collect()
}

#[test]
fn a_package_holds_everything_and_works_where_it_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let said = dev(folder.path(), &["package", "--program", PROGRAM]);
    let package = said.trim();
    let unpacked = folder.path().join("root");
    stdout(&run("dpkg-deb", &["-x", package, unpacked.to_str().unwrap()]));

    let there = files(&unpacked.join("usr"));
    let missing: Vec<_> = wanted("vendor-completions").difference(&there).cloned().collect();
    assert!(missing.is_empty(), "{missing:?} of {there:?}");
    let pages = there.iter().filter(|name| name.starts_with("share/man/")).count();
    assert_eq!(pages, commands().len(), "a page without help");
    // Whatever is unpacked belongs to root, and nobody else writes to it.
    let listing = stdout(&run("dpkg-deb", &["-c", package]));
    for line in listing.lines() {
        assert!(
            line.contains(" root/root ") && !line[5..10].contains('w'),
            "{line}"
        );
    }

    let field = |name| stdout(&run("dpkg-deb", &["-f", package, name]));
    let version = stdout(&run(PROGRAM, &["-V"]));
    assert_eq!(
        format!("dropless {}", field("Version").trim()),
        format!("{}-1", version.trim())
    );
    let depends = field("Depends");
    // The one that the program is linked to, and one that DPDK loads.
    for library in ["libpcap0.8", "librte-eal", "librte-meta-net"] {
        assert!(depends.contains(library), "{depends}");
    }
    assert!(!depends.contains("${"), "{depends}");

    let program = unpacked.join("usr/bin/dropless");
    assert_eq!(stdout(&run(program.to_str().unwrap(), &["-V"])), version);
    installs(package, folder.path());
}

/// dpkg takes it, into a database of its own.
fn installs(package: &str, folder: &Path) {
    let root = folder.join("dpkg");
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let at = format!("--root={}", root.display());
    // The libraries are the machine's; scripts would run inside of a root that has no shell.
    let rest = [
        "--force-depends",
        "--force-not-root",
        "--force-script-chrootless",
        "--log=/dev/null",
    ];
    let mut arguments = vec![at.as_str()];
    arguments.extend(rest);
    stdout(&run("dpkg", &[&arguments[..], &["--install", package]].concat()));
    assert!(root.join("usr/bin/dropless").exists());
    stdout(&run(
        "dpkg",
        &[&arguments[..], &["--remove", "dropless"]].concat(),
    ));
    assert!(!root.join("usr/bin/dropless").exists());
}

#[test]
fn what_is_installed_below_a_prefix_works_and_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let at = ["--prefix", prefix.to_str().unwrap()];
    fs::create_dir_all(prefix.join("share/doc/another")).unwrap();
    fs::write(prefix.join("share/doc/another/file"), "stays").unwrap();
    // Whoever has moved a folder keeps it there.
    fs::create_dir(folder.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("../moved", prefix.join("lib")).unwrap();
    dev(folder.path(), &["install", "--program", PROGRAM, at[0], at[1]]);
    let there = files(&prefix);
    let missing: Vec<_> = wanted("site-functions").difference(&there).cloned().collect();
    assert!(missing.is_empty(), "{missing:?} of {there:?}");

    let crates = fs::read_to_string(prefix.join("share/doc/dropless/crates.txt")).unwrap();
    assert!(crates.contains("clap v4") && !crates.contains("(/"), "{crates}");
    pages_render(&prefix.join("share/man/man1"));
    bash_completes(&prefix);
    units_are_right(&prefix);

    dev(folder.path(), &["uninstall", at[0], at[1]]);
    let left: Vec<_> = files(&prefix).into_iter().collect();
    assert_eq!(left, ["share/doc/another/file"]);
    assert!(prefix.join("lib").is_symlink());
}

/// An older version had other files.
#[test]
fn installed_anew_nothing_of_the_old_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    fs::create_dir(&prefix).unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.path().join("program")).unwrap();
    // Names are those of the folder where it is called.
    let install = ["install", "--program", "program", "--prefix", "prefix"];
    dev(folder.path(), &install);
    let first = files(&prefix);
    let list = prefix.join("share/doc/dropless/installed.txt");
    let old = [
        "share/doc/dropless/old/page.md",
        "share/man/man1/dropless-old.1.gz",
    ];
    let mut text = fs::read_to_string(&list).unwrap();
    fs::create_dir(prefix.join("share/doc/dropless/old")).unwrap();
    for name in old {
        fs::write(prefix.join(name), "old").unwrap();
        text = format!("{name}\n{text}");
    }
    fs::write(&list, text).unwrap();
    fs::write(prefix.join("share/man/man1/another.1.gz"), "stays").unwrap();
    dev(folder.path(), &install);
    let mut second = files(&prefix);
    assert!(second.remove("share/man/man1/another.1.gz"));
    assert_eq!(second, first);
    assert!(!prefix.join("share/doc/dropless/old").exists());

    dev(folder.path(), &["uninstall", "--prefix", "prefix"]);
    let left: Vec<_> = files(&prefix).into_iter().collect();
    assert_eq!(left, ["share/man/man1/another.1.gz"]);
}

#[test]
fn flags_of_the_other_commands_and_odd_prefixes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    fs::create_dir_all(prefix.join("share/doc/dropless")).unwrap();
    fs::write(prefix.join("share/doc/dropless/installed.txt"), "").unwrap();
    let others: [(&[&str], &str); 4] = [
        (
            &["package", "--program", PROGRAM, "--prefix", "prefix"],
            "./dev package takes no --prefix",
        ),
        (
            &["uninstall", "--prefix", "prefix", "--program", PROGRAM],
            "./dev uninstall takes no --program",
        ),
        (
            &["install", "--program", PROGRAM, "--perfix", "prefix"],
            "./dev install takes no --perfix",
        ),
        (
            &["install", "--program", PROGRAM, "--prefix", "of R&D"],
            "of R&D: units of systemd name the program there; use a directory",
        ),
    ];
    for (arguments, words) in others {
        let before = files(folder.path());
        let output = ends(folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains(words),
            "{output:?}"
        );
        assert_eq!(files(folder.path()), before);
    }
}

/// Where a tool fails, or whoever started it is gone.
#[test]
fn what_ends_half_way_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let tools = r#"mkdir "$0" "$1" && printf '#!/bin/sh\neval "$END"\n' >"$0/strip" && chmod 755 "$0/strip""#;
    stdout(&run("sh", &["-c", tools, &at("tools"), &at("scratch")]));
    let path = at("tools") + ":" + &std::env::var("PATH").unwrap();
    for end in ["false", "kill -HUP $PPID", "kill -TERM $PPID"] {
        for what in [&["package"][..], &["install", "--prefix", "prefix"]] {
            let mut ends = command(folder.path(), &[what, &["--program", "/bin/true"]].concat());
            ends.env("PATH", &path)
                .env("TMPDIR", at("scratch"))
                .env("END", end);
            let output = ends.output().unwrap();
            assert!(!output.status.success(), "{end}: {output:?}");
            let left = fs::read_dir(folder.path().join("scratch")).unwrap().count();
            assert_eq!(left, 0, "{end}: {what:?}");
        }
    }
}

fn pages_render(folder: &Path) {
    for page in files(folder) {
        let path = folder.join(&page);
        let output = run("man", &["--warnings", "-l", path.to_str().unwrap()]);
        assert!(output.stderr.is_empty(), "{page}: {output:?}");
        let text = stdout(&output);
        let name = page.trim_end_matches(".1.gz");
        assert!(text.contains("NAME") && text.contains(name), "{page} says {text}");
    }
}

/// As bash-completion does it: by the file that has the command's name.
fn bash_completes(prefix: &Path) {
    let script = r#"
        source "$0/share/bash-completion/completions/dropless" || exit
        COMP_WORDS=(dropless send --por) COMP_CWORD=2 COMPREPLY=()
        _dropless dropless --por send
        echo "${COMPREPLY[@]}"
    "#;
    let output = run("bash", &["-c", script, prefix.to_str().unwrap()]);
    assert_eq!(stdout(&output), "--port\n", "{output:?}");
}

fn units_are_right(prefix: &Path) {
    for unit in units() {
        let path = prefix.join("lib/systemd/system").join(&unit);
        let text = fs::read_to_string(&path).unwrap();
        let program = format!("ExecStart={}/bin/dropless ", prefix.display());
        assert!(text.contains(&program), "{unit}: {text}");
        // A reflector on sockets listens on port 7.
        let listens = unit.starts_with("dropless-reflect");
        assert_eq!(text.contains("CAP_NET_BIND_SERVICE"), listens, "{unit}");
        if has("systemd-analyze") {
            let output = run("systemd-analyze", &["verify", path.to_str().unwrap()]);
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{unit}: {output:?}"
            );
        }
    }
}
