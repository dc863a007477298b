//! Capture filters in the syntax of libpcap (pcap-filter(7)), which compiles and runs them.

use std::ffi::{c_int, c_uint};

use pcap::{BpfProgram, Capture, Linktype, PacketHeader};
use thiserror::Error;

use crate::input::LinkType;

/// Why an expression is no filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// What libpcap says of it.
    #[error("`{expression}`: {words}{}", place.as_ref().map_or_else(String::new, |rest| format!(", at `{rest}`")))]
    Refused {
        /// The expression.
        expression: String,
        /// libpcap's own words.
        words: String,
        /// The expression from the first word on with which no beginning of it is a filter.
        place: Option<String>,
    },
}

/// A compiled filter, for packets of one kind of link.
pub struct Filter(BpfProgram);

impl Filter {
    /// Compiles `expression` for frames of Ethernet. Names of hosts and networks are looked up.
    pub fn compile(expression: &str) -> Result<Self, FilterError> {
        Self::compile_for(expression, LinkType::Ethernet)
    }

    /// Compiles `expression` for packets that begin as `link` says.
    pub fn compile_for(expression: &str, link: LinkType) -> Result<Self, FilterError> {
        compile(expression, link)
            .map(Self)
            .map_err(|words| FilterError::Refused {
                expression: expression.into(),
                place: place(expression, &words, link),
                words,
            })
    }

    /// Whether a packet of `len` bytes passes, of which `data` is the beginning that was captured.
    #[inline]
    pub fn passes(&self, data: &[u8], len: u32) -> bool {
        let header = PacketHeader {
            ts: libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            },
            caplen: data.len() as u32,
            len,
        };
        // SAFETY: the program is one that libpcap compiled, since nothing else makes a `BpfProgram`, and of `data` no more is
        // read than the length that the header says. Nothing is written.
        unsafe { pcap_offline_filter(&raw const self.0, &raw const header, data.as_ptr()) > 0 }
    }
}

// The crate `pcap` links the library. Its own `BpfProgram::filter` takes what was captured for all of the packet.
unsafe extern "C" {
    /// Both structures are the C ones: one is transparent over it, one laid out as it is.
    fn pcap_offline_filter(program: *const BpfProgram, header: *const PacketHeader, data: *const u8)
    -> c_int;
}
const _: () = assert!(
    size_of::<BpfProgram>() == size_of::<(c_uint, *const u8)>(),
    "`struct bpf_program` of pcap/bpf.h"
);

/// The number by which libpcap knows a kind of link: its own (`DLT_`), which of raw IP is not that of files.
fn number(link: LinkType) -> Linktype {
    match link {
        LinkType::Null => Linktype::NULL,
        LinkType::Ethernet => Linktype::ETHERNET,
        LinkType::Raw => Linktype(12),
        LinkType::Loopback => Linktype::LOOP,
        LinkType::Sll => Linktype::LINUX_SLL,
        LinkType::Sll2 => Linktype(276),
        LinkType::Other(number) => Linktype(number.into()),
    }
}

fn compile(expression: &str, link: LinkType) -> Result<BpfProgram, String> {
    let compiled = Capture::dead(number(link)).and_then(|dead| dead.compile(expression, true));
    compiled.map_err(|error| match error {
        pcap::Error::PcapError(words) => words,
        other => other.to_string(),
    })
}

/// libpcap's parser does not say where it stopped: the longest beginning that is a filter by itself ends before that.
fn place(expression: &str, words: &str, link: LinkType) -> Option<String> {
    if !words.contains("syntax error") {
        return None;
    }
    let starts = expression.char_indices().filter(|&(at, letter)| {
        let before = expression[..at].chars().next_back();
        !letter.is_whitespace() && before.is_none_or(char::is_whitespace)
    });
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let fails_from = starts.iter().rev().find(|at| {
        let beginning = expression[..**at].trim();
        beginning.is_empty() || compile(beginning, link).is_ok()
    });
    fails_from.map(|at| expression[*at..].trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from 10.0.0.1:1000 to 10.0.0.2:53.
    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
        frame[23] = 17;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&[0x03, 0xE8, 0, 53]);
        frame
    }

    #[test]
    fn what_passes_is_what_the_expression_says() {
        let passes = |expression: &str, frame: &[u8]| {
            let len = frame.len() as u32;
            Filter::compile(expression).unwrap().passes(frame, len)
        };
        let frame = frame();
        for yes in [
            "",
            "udp",
            "udp port 53",
            "host 10.0.0.1 and not tcp",
            "less 60",
            "src net 10.0.0.0/8",
        ] {
            assert!(passes(yes, &frame), "{yes}");
        }
        for no in ["tcp", "port 54", "greater 61", "vlan", "ip6", "arp or icmp"] {
            assert!(!passes(no, &frame), "{no}");
        }
        assert!(
            !passes("udp port 53", &frame[..30]),
            "what is not there matches nothing"
        );
    }

    #[test]
    fn lengths_are_those_before_packets_were_cut() {
        let (frame, passes) = (frame(), |expression: &str, frame: &[u8], len| {
            Filter::compile(expression).unwrap().passes(frame, len)
        });
        let cut = &frame[..38];
        for (expression, passes_whole, passes_cut) in [
            ("greater 60", true, true),
            ("greater 1000", false, false),
            ("less 59", false, false),
            ("len = 60", true, true),
            ("udp port 53 and len = 60", true, true),
            // What was not captured is not there, whatever the length says.
            ("ether[40] = 0", true, false),
        ] {
            assert_eq!(passes(expression, &frame, 60), passes_whole, "{expression}");
            assert_eq!(passes(expression, cut, 60), passes_cut, "{expression}");
        }
        assert!(passes("greater 1000", cut, 1514) && !passes("less 1000", cut, 1514));
        assert!(!passes("udp", &[], 60) && passes("", &[], 60));
    }

    #[test]
    fn packets_of_every_kind_of_link_are_looked_into() {
        let ip = frame().split_off(14);
        let sll = [&[0; 14][..], &[8, 0], &ip].concat();
        let sll2 = [&[8, 0][..], &[0; 18], &ip].concat();
        let loopback = [&[0, 0, 0, 2][..], &ip].concat();
        for (link, packet) in [
            (LinkType::Raw, ip),
            (LinkType::Sll, sll),
            (LinkType::Sll2, sll2),
            (
                LinkType::Null,
                [&2_u32.to_ne_bytes()[..], &loopback[4..]].concat(),
            ),
            (LinkType::Loopback, loopback),
        ] {
            let len = packet.len() as u32;
            let passes = |text: &str| Filter::compile_for(text, link).unwrap().passes(&packet, len);
            assert!(passes("udp port 53") && !passes("udp port 54"), "{link:?}");
        }
    }

    #[test]
    fn an_error_has_the_words_of_libpcap_and_the_place() {
        let refused = |expression: &str| match Filter::compile(expression) {
            Err(FilterError::Refused { words, place, .. }) => (words, place),
            Ok(_) => panic!("{expression} is no filter"),
        };
        let (words, place) = refused("udp port 53 adn host 10.0.0.1");
        assert!(words.contains("syntax error"), "{words}");
        assert_eq!(place.as_deref(), Some("adn host 10.0.0.1"));
        assert_eq!(refused("prot 53").1.as_deref(), Some("prot 53"));
        assert_eq!(refused("udp and").1.as_deref(), Some("and"));
        // Where the words name it there is nothing to add.
        let (words, place) = refused("port 99999");
        assert!(words.contains("99999"), "{words}");
        assert_eq!(place, None);
        assert!(refused("udp\0").0.contains("nul"));
    }
}
