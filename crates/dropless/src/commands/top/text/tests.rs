use measure::PortSummary;
use report::published::Phase;

use super::*;

/// A guard between two ports forwards, and goes on having done so when it has ended; one in an interface sees no loss.
#[test]
fn what_has_ports_tells_what_they_lost() {
    let told = |command: &str, phase, ports| {
        let mut state = State {
            phase,
            ports: vec![PortSummary::default(); ports],
            ..State::default()
        };
        state.process.command = command.to_owned();
        state.total.lost = 7;
        losses(&state)
    };
    for (command, ports) in [("forward", 2), ("guard", 2), ("reflect", 1), ("capture", 0)] {
        for phase in [Phase::Forwarding, Phase::Ended] {
            assert_eq!(told(command, phase, ports), [("lost", 7)], "{command}");
        }
    }
    for command in ["guard", "filter"] {
        assert!(told(command, Phase::Filtering, 0).is_empty(), "{command}");
    }
}

/// A number whose end is cut off is another number.
#[test]
fn rates_have_room_on_a_small_screen() {
    let mut state = State::default();
    (state.rate.tx_pps, state.rate.rx_pps) = (14_880_952.0, 14_880_000.0);
    (state.total.sent, state.total.received) = (1_234_567_890, 1_234_560_000);
    (state.total.lost, state.total.under_way) = (123_456_789, 1_355_123);
    (state.pool.size, state.pool.free) = (65_536, 12_345);
    for width in [40, 50, 60, 80] {
        let style = Style {
            width,
            ..Style::plain()
        };
        let text = traffic(&state, &style).render(&style);
        assert!(text.lines().all(|line| line.len() <= width), "{width}:\n{text}");
        for words in ["14.88 Mpps", "123,456,789", "up to 1,355,123"] {
            assert!(text.contains(words), "{words}, {width}:\n{text}");
        }
    }
}

/// Frames that never were probes are none of a reflector's losses.
#[test]
fn what_was_no_probe_is_left_out() {
    let mut state = State::default();
    state.add_places([("not_ip", 1), ("fragment", 2), ("rx_missed", 3), (FAULT_DROP, 4)]);
    let has = |table: Table, place: &str| table.render(&Style::plain()).contains(place);
    for (place, is_lost) in [
        ("not_ip", false),
        ("fragment", true),
        ("rx_missed", true),
        (FAULT_DROP, true),
    ] {
        assert_eq!(has(lost_at(&state), place), is_lost, "{place}");
        assert_eq!(has(left_out(&state), place), !is_lost, "{place}");
    }
}
