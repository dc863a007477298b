//! Ctrl-C on a terminal: the terminal's own `^C` is glued to nothing, and the settings stay.

use crate::support::require;
use crate::support::terminal::Terminal;

const COMPARE: &str = "compare --methods memif --rates 2kpps --duration 2s";
const SEARCH: &str = "search --no-huge --no-doctor --max-rate 5kpps --min-rate 1kpps --backlog=1000000";
const SEND: &str = "send --no-huge --no-doctor --port ring --rate 5kpps --duration 60s";
const REFLECT: &str = "reflect --no-huge --no-doctor --port null";

#[test]
fn nothing_is_glued_to_the_echo_of_ctrl_c() {
    let Some(lab) = require(&[]) else { return };
    for (arguments, goes, told) in [
        (COMPARE, "for its latency", "Compared over"),
        (SEARCH, "trial 1", "NOT FINISHED: interrupted"),
        (SEND, "sending", "run directory"),
        (REFLECT, "reflecting on", "run directory"),
        (&format!("{SEND} 2>/dev/null; :"), "", ""),
    ] {
        // High enough for all that is printed.
        let mut terminal = Terminal::dropless(&lab, arguments, 80, 120);
        terminal.wait_for(goes);
        if goes.is_empty() {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        terminal.press("\x03");
        terminal.wait_for("code ");
        terminal.wait_for(told);
        terminal.wait_for("restored");
        let text = terminal.text();
        assert!(!text.contains("^C"), "{arguments}:\n{text}");
    }
}
