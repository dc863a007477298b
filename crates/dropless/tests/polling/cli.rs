//! Every page of the command line: `--help` as in `docs/help`, others as recorded in `tests/cli`, and completions that complete.
//!
//! After a wanted change `UPDATE_GOLDEN=1 ./dev test cli::` writes them anew.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::support::golden_files::assert_golden;
use crate::support::{Need, require};

/// How long a shell may take.
const LIMIT: Duration = Duration::from_secs(60);

fn dropless(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dropless"));
    command.args(arguments).output().expect("starting dropless")
}

fn stdout(arguments: &[&str]) -> String {
    let output = dropless(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

#[test]
fn pages_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the pages") {
        let path = entry.expect("a page").path();
        let recorded = std::fs::read_to_string(&path).expect("a page is text");
        // A page is a command, how it ended if not with 0, and all that it printed.
        let command = recorded.lines().nth(1).expect("a command");
        let arguments: Vec<&str> = command.split_whitespace().skip(2).collect();
        let output = dropless(&arguments);
        let code = match output.status.code() {
            Some(0) => String::new(),
            code => format!("? {}\n", code.expect("no signal ended it")),
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("a page is text");
        let printed = format!("```\n{command}\n{code}{said}\n```\n");
        let printed = printed.replace(concat!("dropless ", env!("CARGO_PKG_VERSION")), "dropless [..]");
        // DPDK is the machine's.
        let printed = match printed
            .split_once("\nDPDK ")
            .map(|(before, after)| (before, after.split_once('\n')))
        {
            Some((before, Some((version, after)))) if version.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{before}\nDPDK [..]\n{after}")
            }
            _ => printed,
        };
        pages.push((path, printed));
    }
    assert!(!pages.is_empty(), "no page was compared");
    assert_golden(&pages);
}

#[test]
fn the_documented_help_is_the_printed_help() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/help");
    let pages = [
        ("dropless.txt", &["--help"][..]),
        ("send.txt", &["send", "--help"]),
        ("search.txt", &["search", "--help"]),
        ("reflect.txt", &["reflect", "--help"]),
        ("capture.txt", &["capture", "--help"]),
        ("forward.txt", &["forward", "--help"]),
        ("read.txt", &["read", "--help"]),
        ("replay.txt", &["replay", "--help"]),
        ("filter.txt", &["filter", "--help"]),
        ("filter-run.txt", &["filter", "run", "--help"]),
        ("filter-reload.txt", &["filter", "reload", "--help"]),
        ("filter-status.txt", &["filter", "status", "--help"]),
        ("filter-top.txt", &["filter", "top", "--help"]),
        ("filter-stop.txt", &["filter", "stop", "--help"]),
        ("filter-check.txt", &["filter", "check", "--help"]),
        ("filter-test.txt", &["filter", "test", "--help"]),
        ("filter-import.txt", &["filter", "import", "--help"]),
        ("guard.txt", &["guard", "--help"]),
        ("extcap.txt", &["extcap", "--help"]),
        ("compare.txt", &["compare", "--help"]),
        ("noise.txt", &["noise", "--help"]),
        ("ports.txt", &["ports", "--help"]),
        ("tune.txt", &["tune", "--help"]),
        ("doctor.txt", &["doctor", "--help"]),
        ("report.txt", &["report", "--help"]),
        ("top.txt", &["top", "--help"]),
        ("completions.txt", &["completions", "--help"]),
    ];
    assert_golden(&pages.map(|(file, arguments)| (folder.join(file), stdout(arguments))));
}

#[test]
fn every_flag_of_a_run_is_explained() {
    for command in ["send", "search", "reflect"] {
        let page = stdout(&[command, "--help"]);
        for heading in ["Path:", "Machine:", "Measurement:", "Output:", "Examples:"] {
            assert!(page.contains(heading), "{heading} is missing in\n{page}");
        }
        let mut lines = page.lines().peekable();
        while let Some(line) = lines.next() {
            let flag = line.trim_start().starts_with('-') && line.starts_with("  ");
            let explained =
                line.trim_start().contains("  ") || lines.peek().is_some_and(|next| !next.trim().is_empty());
            assert!(!flag || explained, "{line} says nothing");
        }
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let script = r#"
        source <("$0" completions bash)
        complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _dropless dropless "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[@]}"; }
        complete_line dropless co
        complete_line dropless send --por
        complete_line dropless send --verify ch
        complete_line dropless send --port x
        complete_line dropless capture --port pc
        complete_line dropless search --goal ""
        complete_line dropless search --test l
        complete_line dropless send --expect latency_p9
        complete_line dropless forward --expect den
        complete_line dropless forward --mode ""
        complete_line dropless filter run --mode g
        complete_line dropless guard --threshold sy
        complete_line dropless noise --threshold ""
        complete_line dropless compare --methods kernel-
        cd /
        complete_line dropless send --rate u
        complete_line dropless send --config us
    "#;
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_dropless")])
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "compare completions",
            "--port",
            "checksum",
            "xdp:",
            "pci: pcap:",
            "ndr pdr loss=",
            "latency",
            "latency_p90 latency_p99 latency_p999",
            "denied",
            "io mac swap",
            "generic",
            "syn=",
            // A time.
            "",
            "kernel-mmsg kernel-uring",
            // A rate is no file.
            "u",
            "usr",
        ],
        "{output:?}"
    );
}

/// What the two other shells are to offer behind a beginning, the descriptions left out.
const OFFERED: [(&str, &str); 5] = [
    ("dropless compa", "compare"),
    ("dropless search --goal ", "loss= ndr pdr"),
    ("dropless capture --port pc", "pcap: pci:"),
    ("dropless filter run --mode ", "generic native"),
    ("dropless forward --expect den", "denied"),
];

#[test]
fn fish_completes_commands_and_values() {
    let Some(lab) = require(&[Need::Tool("fish")]) else {
        return;
    };
    std::fs::write(lab.path("of.fish"), stdout(&["completions", "fish"])).expect("a script");
    for (line, offered) in OFFERED {
        let script = format!("fish --no-config -c \"source of.fish; complete -C '{line}'\"");
        let said = lab.shell(&script).wait(LIMIT);
        let words: Vec<&str> = said
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        assert_eq!(words.join(" "), offered, "{line}: {said}");
    }
}

/// In a terminal of its own, as zsh completes nowhere else: one key lists what there is, the next says that it is over.
#[test]
fn zsh_completes_commands_and_values() {
    let Some(lab) = require(&[Need::Tool("zsh")]) else {
        return;
    };
    std::fs::write(lab.path("_dropless"), stdout(&["completions", "zsh"])).expect("a script");
    // Whether a key begins a longer one is waited for: 10 ms, and not 400.
    let inside = r"
        stty cols 200; setopt nobeep; KEYTIMEOUT=1; fpath=($PWD $fpath)
        autoload -Uz compinit; compinit -u -D
        over() { print OVER }
        zle -N over; bindkey '^I' list-choices '^X' over
        print READY
    ";
    let outside = r#"
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z 'source inside.zsh'
        zpty -r z said '*READY*' || exit 3
        zpty -wn z "$1"$'\t\x18'
        zpty -r z said '*OVER*' || exit 4
        print -r -- "$said"
    "#;
    for (name, script) in [("inside.zsh", inside), ("outside.zsh", outside)] {
        std::fs::write(lab.path(name), script).expect("a script");
    }
    for (line, offered) in OFFERED {
        let said = lab
            .shell(&format!(
                "zsh -f outside.zsh '{line}' | sed 's/\\x1b[^a-zA-Z]*[a-zA-Z]//g'"
            ))
            .wait(LIMIT);
        let listed: Vec<&str> = said
            .stdout
            .lines()
            .map(|line| line.split(" -- ").next().unwrap_or(line))
            .flat_map(str::split_whitespace)
            .collect();
        for word in offered.split(' ') {
            assert!(listed.contains(&word), "{line}: {word}: {said}");
        }
    }
}

#[test]
fn a_closed_stdout_is_no_error() {
    for page in ["send --help", "ports", "completions bash"] {
        let script = format!("\"$0\" {page} | head -n 1; echo \"${{PIPESTATUS[0]}}\" >&2");
        let output = Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_dropless")])
            .output()
            .expect("bash");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n", "{page}");
    }
}

/// Every page of the documentation: its path and text.
fn pages() -> Vec<(std::path::PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut folders, mut pages) = (vec![root.join("docs")], Vec::new());
    for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        pages.push(root.join(name));
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("reading docs").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("reading a page");
        (path, text)
    };
    pages.into_iter().map(read).collect()
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    for (path, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let target = path.with_file_name("").join(file);
            assert!(target.exists(), "{} links to {link}", path.display());
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(target).expect("reading the page linked to");
                let slug = |line: &str| {
                    line.trim_start_matches('#')
                        .trim()
                        .to_lowercase()
                        .replace(|c: char| !(c.is_alphanumeric() || " -_".contains(c)), "")
                        .replace(' ', "-")
                };
                assert!(
                    text.lines()
                        .any(|line| line.starts_with('#') && slug(line) == anchor),
                    "{link}"
                );
            }
        }
    }
}

#[test]
fn commands_of_the_documentation_have_only_flags_that_exist() {
    let mut seen = 0;
    for (path, text) in pages() {
        for line in text.lines() {
            let line = line.trim_start_matches(['$', ' ', '`']);
            let Some(words) = line.strip_prefix("dropless ") else {
                continue;
            };
            let mut names = words.split([' ', '`']);
            let command = names.next().unwrap_or_default();
            let page = match command {
                "send" | "search" | "compare" | "reflect" | "forward" | "capture" | "read" | "replay"
                | "extcap" | "guard" | "noise" | "ports" | "doctor" | "tune" | "report" | "top" => {
                    stdout(&[command, "--help"])
                }
                "filter" => stdout(&[command, names.next().unwrap_or_default(), "--help"]),
                "completions" => continue,
                other => panic!("{}: dropless {other}", path.display()),
            };
            // Behind a pipe it is another program's.
            let own = words.split(" | ").next().unwrap_or_default();
            let flags = own.split([' ', '`', '=']).filter(|word| word.starts_with("--"));
            for flag in flags {
                seen += 1;
                let known = page
                    .split_whitespace()
                    .any(|word| word.trim_end_matches(',') == flag);
                assert!(known, "{}: dropless {command} has no {flag}", path.display());
            }
        }
    }
    assert!(seen > 20, "only {seen} flags were looked at");
}
