//! A sender, and a capture that writes files, which are read back.

use std::path::PathBuf;

use measure::capture::CaptureSummary;
use measure::summary::Summary;
use serde_json::Value;

use crate::balance::{Account, Missing};
use crate::kinds::path::Path;
use crate::round::{Round, result};
use crate::support::wire::NO_TIME;

/// Whoever nobody is: a sender that knows an address asks nothing.
const NOBODY: &str = "02:00:00:00:00:09";

pub fn captured(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    let (within, port) = path.far();
    // Files that take turns, or one.
    let files = if round.plan.events.len() > 4 {
        "--file-size 32MiB"
    } else {
        ""
    };
    let line = format!(
        "capture --port {port} --queues {} --to a.pcapng {files}",
        round.plan.queues
    );
    let mut capture = round.start(within, &line);
    path.wait_until_it_serves(&mut capture, "capturing from");
    let sent: Summary = result(&round.wait(path.send(round, &format!("--tx-only --to-mac {NOBODY}"))));
    let captured: CaptureSummary = result(&round.end(capture));
    let mut account = Account::default();
    account.sender(&sent, &NO_TIME, &Missing::Nothing);
    account.named.clear();
    // A memif that its peer has left is a link that was lost.
    account.capture(&captured, if path.is_memif() { &["link_lost"] } else { &[] });
    for charge in &captured.ledger.places {
        account.name(&charge.place, charge.charged);
    }
    account.equal(
        "sent, and come to the capture",
        sent.sent,
        captured.ledger.entered,
    );
    let written = captured.files.as_ref().map_or(0, |files| files.packets);
    account.equal(
        "packets in the files, as they are read",
        read_back(round),
        written,
    );
    account
}

/// Packets of all files.
fn read_back(round: &Round<'_>) -> u64 {
    let is_capture = |path: &PathBuf| path.extension().is_some_and(|end| end == "pcapng");
    let entries = std::fs::read_dir(round.lab.directory())
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_capture).collect();
    files.sort();
    let count = |file: &PathBuf| {
        let read = round.wait(
            round
                .lab
                .dropless(&["read", &file.display().to_string(), "--connections", "--json"])
                .spawn(),
        );
        assert_eq!(read.code, Some(0), "{read}");
        let summary: Value =
            serde_json::from_str(read.stdout.lines().last().unwrap_or_default()).unwrap_or_default();
        summary["packets"]
            .as_u64()
            .unwrap_or_else(|| panic!("no count of packets: {read}"))
    };
    files.iter().map(count).sum()
}
