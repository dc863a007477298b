//! Capture filters in the syntax of libpcap (pcap-filter(7)), which compiles and runs them.

use pcap::{BpfProgram, Capture, Linktype};
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

    /// Whether the whole of a frame passes.
    #[inline]
    pub fn passes(&self, frame: &[u8]) -> bool {
        self.0.filter(frame)
    }
}

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
        let passes = |expression: &str, frame: &[u8]| Filter::compile(expression).unwrap().passes(frame);
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
            let passes = |text: &str| Filter::compile_for(text, link).unwrap().passes(&packet);
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
