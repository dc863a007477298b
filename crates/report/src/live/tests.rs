//! The live display, drawn onto a screen of bytes.

use super::draw::drawing;
use super::*;
use crate::published::{ConsumerLevel, Phase, Totals};
use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use unicode_width::UnicodeWidthStr;

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn at(milliseconds: u64) -> State {
    let mut state = State {
        phase: Phase::Sending,
        elapsed_s: milliseconds as f64 / 1e3,
        done: Some(milliseconds as f64 / 10_000.0),
        planned_s: Some(10.0),
        ..State::default()
    };
    (state.rate.tx_pps, state.rate.rx_pps, state.rate.over_s) = (3.5e6, 3.4e6, 1.0);
    (state.total.sent, state.total.lost) = (14_700_000, 12);
    state.latency_recent_ns.p50 = Some(1234);
    state
}

#[test]
fn elsewhere_one_line_per_second() {
    let screen = Screen::default();
    let mut live = Live::onto(Box::new(screen.clone()), None);
    (0..30).for_each(|tenth| live.update(&at(tenth * 100)));
    live.finish();
    let text = screen.text();
    assert_eq!(text.lines().count(), 2);
    let first = "    1.0 s  sending: tx 3.500 Mpps, rx 3.400 Mpps, sent 14,700,000, lost 12, unsent 0, p50 1.234 us, p99 -";
    assert_eq!(text.lines().next().unwrap(), first);
}

#[test]
fn a_port_that_takes_nothing_is_told_first() {
    let state = State {
        refused_s: Some(2.04),
        ..at(1000)
    };
    let (text, _) = drawing(&state, &Style::plain());
    assert!(text.contains("\nport takes nothing for 2 s   tx "), "{text}");
}

#[test]
fn a_caller_of_one_per_second_is_never_skipped() {
    let screen = Screen::default();
    let mut live = Live::onto(Box::new(screen.clone()), None);
    for ms in [1002, 1998, 3001, 3999] {
        live.update(&at(ms));
    }
    live.finish();
    assert_eq!(screen.text().lines().count(), 4);
}

#[test]
fn in_place_each_drawing_erases_the_last() {
    let screen = Screen::default();
    let mut live = Live::onto(Box::new(screen.clone()), Some(Style::plain()));
    for ms in [4200, 4210, 4300] {
        live.update(&at(ms)); // the second too early
        live.writer.wait();
    }
    live.finish();
    let first = "sending  ################------------------------  4.2 s of 10.0 s\n\
                 tx 3.500 Mpps   rx 3.400 Mpps   sent 14,700,000   lost 12   unsent 0\n\
                 p50 1.234 us   p99 -\n";
    let text = screen.text();
    assert!(text.starts_with(first), "{text}");
    assert_eq!(text.matches("\r\x1b[3A\x1b[J").count(), 2);
    assert!(text.ends_with("\x1b[J"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut state = at(5000);
    state.total.lost = 123_456_789;
    state.total.under_way = 123_456_789;
    state.refused_s = Some(2.4);
    for width in [1, 2, 5, 20, 30, 40, 80, 120] {
        let (text, lines) = drawing(
            &state,
            &Style {
                width,
                ..Style::plain()
            },
        );
        assert_eq!(text.lines().count(), lines);
        assert!(text.lines().all(|line| line.width() < width), "{width}: {text}");
        let is_cut = text.lines().any(|line| line.ends_with('~'));
        assert_eq!(is_cut, (2..80).contains(&width), "{width}: {text}");
    }
}

#[test]
fn a_reader_who_goes_ends_the_display_only() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut live = Live::onto(Box::new(full), None);
    live.update(&at(1000));
    live.writer.wait();
    live.update(&at(2000));
    assert!(matches!(live.look, Look::Off));
    live.finish();
}

/// A terminal that is stopped, or a pipe that nobody reads: whoever draws goes on, and so does the end.
#[test]
fn a_reader_who_takes_nothing_keeps_nobody_waiting() {
    for style in [None, Some(Style::plain())] {
        // std's own is younger than the oldest compiler that builds this.
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let (mut pipe, writer) = (File::from(reader), File::from(writer));
        let mut live = Live::onto(Box::new(writer), style);
        for second in 1..5000 {
            live.update(&at(second * 1000));
        }
        live.say("and this");
        live.finish();
        // Once it reads, what was under way at the end is all that comes.
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        assert!(
            text.len() < 5000 * 60 && !text.ends_with("\x1b[J"),
            "{}",
            text.len()
        );
    }
}

#[test]
fn what_is_said_stands_above_the_next_drawing() {
    let screen = Screen::default();
    let mut live = Live::onto(Box::new(screen.clone()), Some(Style::plain()));
    live.update(&at(4200));
    live.writer.wait();
    live.say("a line");
    live.update(&at(4300));
    live.writer.wait();
    live.finish();
    let text = screen.text();
    assert!(text.contains("p99 -\n\r\x1b[3A\x1b[Ja line\n"), "{text}");
    assert!(text.ends_with("p99 -\n\r\x1b[3A\x1b[J"), "{text}");
}

#[test]
fn a_capture_tells_what_is_in_its_ring_and_who_did_not_get_it() {
    let mut state = at(1000);
    state.phase = Phase::Capturing;
    (state.total.received, state.total.captured, state.total.lost) = (59_582, 13_134, 7);
    let line = draw::line(&state);
    assert!(
        line.ends_with("rx 3.400 Mpps, captured 13,134, lost 7\n"),
        "{line}"
    );
    state.consumers = [0, 5, 6]
        .map(|lost| ConsumerLevel {
            lost,
            ..ConsumerLevel::default()
        })
        .to_vec();
    let line = draw::line(&state);
    assert!(line.ends_with("lost 7, lost by consumers 11\n"), "{line}");
}

/// While it waits for the last packets to leave it is no sender, which waits for them to come back.
#[test]
fn a_replay_that_drains_is_still_one() {
    let mut state = at(2000);
    state.process.command = "replay".into();
    let words = |phase| {
        let state = State {
            phase,
            ..state.clone()
        };
        draw::line(&state).split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(words(Phase::Draining), words(Phase::Replaying));
    // Also what its port did not send, and it took.
    assert!(words(Phase::Draining).contains("not sent 12,"));
}

/// What is received, passed and denied are the same frames; the host's own are told apart.
#[test]
fn what_passed_is_of_what_was_received() {
    let mut state = at(2000);
    state.phase = Phase::Forwarding;
    state.total = Totals {
        received: 16,
        sent: 23,
        sent_own: 10,
        ..Totals::default()
    };
    state.add_places([(measure::place::TO_KERNEL, 3)]);
    let line = draw::line(&state);
    assert!(
        line.ends_with("received 16, passed 13, lost 0, to host 3, from host 10\n"),
        "{line}"
    );
}

#[test]
fn no_more_time_has_passed_than_was_planned() {
    let text = |ms| drawing(&at(ms), &Style::plain()).0;
    assert!(text(9_900).contains("9.9 s of 10.0 s"));
    assert!(!text(10_100).contains(" of "), "{}", text(10_100));
}

/// One figure of loss, which says how much of it is known; and no rate where nothing was sent yet.
#[test]
fn what_is_under_way_may_be_lost_and_nothing_sent_has_no_rate() {
    let mut state = at(1000);
    (state.total.lost, state.total.under_way) = (455, 1355);
    let line = draw::line(&state);
    assert!(
        line.contains(", lost 455, up to 1,355 under way, unsent 0,"),
        "{line}"
    );
    state.total = Totals::default();
    let line = draw::line(&state);
    assert!(
        line.contains("sending: tx -, rx -, sent 0, lost 0, unsent 0,"),
        "{line}"
    );
}

/// Outside UTF-8 no byte beyond ASCII gets out, whatever a name holds.
#[test]
fn plain_text_is_ascii() {
    let plain = Style::plain();
    assert_eq!(plain.fitted("Größe … ━─ ok".to_owned()), "Gr??e ~ #- ok");
    let unicode = Style {
        unicode: true,
        ..plain
    };
    assert_eq!(unicode.fitted("Größe …".to_owned()), "Größe …");
}
