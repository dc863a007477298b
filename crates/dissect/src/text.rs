//! Text as bytes, and how numbers and addresses are put into it: without an allocation, and sooner than by `fmt`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// What was written and not taken away yet.
#[derive(Debug, Default)]
pub struct Text(Vec<u8>);

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Two digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

impl Text {
    /// Nothing, with room for `len` bytes.
    pub fn with_capacity(len: usize) -> Self {
        Self(Vec::with_capacity(len))
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// How much was written.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Fixed words, or what was cleaned.
    #[inline]
    pub fn put(&mut self, words: &str) -> &mut Self {
        self.0.extend_from_slice(words.as_bytes());
        self
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A number.
    #[inline]
    pub fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.put(itoa::Buffer::new().format(number))
    }

    /// A number below 100, in two digits.
    #[inline]
    pub(crate) fn pair(&mut self, number: u32) -> &mut Self {
        self.bytes(&PAIRS[number as usize % 100])
    }

    /// A number in six digits.
    #[inline]
    pub(crate) fn six(&mut self, number: u32) -> &mut Self {
        self.pair(number / 10_000).pair(number / 100).pair(number)
    }

    /// A number of 16 bits in four digits of base 16.
    pub(crate) fn hex16(&mut self, number: u16) -> &mut Self {
        let [high, low] = number.to_be_bytes();
        self.put("0x").hex8(high).hex8(low)
    }

    fn hex8(&mut self, byte: u8) -> &mut Self {
        self.bytes(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
    }

    /// An address of Ethernet.
    pub(crate) fn mac(&mut self, mac: [u8; 6]) -> &mut Self {
        for (index, byte) in mac.into_iter().enumerate() {
            if index > 0 {
                self.byte(b':');
            }
            self.hex8(byte);
        }
        self
    }

    /// An address.
    #[inline]
    pub(crate) fn address(&mut self, address: IpAddr) -> &mut Self {
        match address {
            IpAddr::V4(address) => self.v4(address),
            IpAddr::V6(address) => self.v6(address),
        }
    }

    #[inline]
    pub(crate) fn v4(&mut self, address: Ipv4Addr) -> &mut Self {
        let [a, b, c, d] = address.octets();
        self.octet(a)
            .byte(b'.')
            .octet(b)
            .byte(b'.')
            .octet(c)
            .byte(b'.')
            .octet(d)
    }

    #[inline]
    fn octet(&mut self, octet: u8) -> &mut Self {
        match octet {
            0..10 => self.byte(b'0' + octet),
            10..100 => self.pair(u32::from(octet)),
            _ => self.byte(b'0' + octet / 100).pair(u32::from(octet % 100)),
        }
    }

    /// As RFC 5952 has it: the longest run of zeros left out, the first one of several.
    pub(crate) fn v6(&mut self, address: Ipv6Addr) -> &mut Self {
        // Its last 32 bits are written as those of IPv4: it is rare, and known to the standard library.
        if address.to_ipv4_mapped().is_some() {
            return self.put(&address.to_string());
        }
        let words = address.segments();
        let zeros = longest_zeros(&words);
        for (index, word) in words.into_iter().enumerate() {
            if index == zeros.start {
                self.put("::");
            }
            if zeros.contains(&index) {
                continue;
            }
            if index > 0 && index != zeros.end {
                self.byte(b':');
            }
            self.hex_word(word);
        }
        self
    }

    /// Without leading zeros.
    fn hex_word(&mut self, word: u16) -> &mut Self {
        let digits = (4 - word.leading_zeros() / 4).max(1);
        for digit in (0..digits).rev() {
            self.byte(HEX[usize::from(word >> (4 * digit) & 15)]);
        }
        self
    }
}

/// The longest run of zeros, if it is longer than one; else a run behind the end.
fn longest_zeros(words: &[u16; 8]) -> Range<usize> {
    let (mut best, mut run) = (8..8, 0..0);
    for (index, word) in words.iter().enumerate() {
        run = if *word == 0 {
            run.start..index + 1
        } else {
            index + 1..index + 1
        };
        if run.len() > best.len().max(1) {
            best = run.clone();
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(write: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        write(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn addresses_are_as_the_standard_library_has_them(
            octets: [u8; 4],
            words in prop::array::uniform8(prop_oneof![Just(0_u16), 0..300_u16, any::<u16>()]),
        ) {
            let (v4, v6) = (Ipv4Addr::from(octets), Ipv6Addr::from(words));
            prop_assert_eq!(said(|text| { text.v4(v4); }), v4.to_string());
            prop_assert_eq!(said(|text| { text.v6(v6); }), v6.to_string());
        }

        #[test]
        fn numbers_have_all_their_digits(number in 0..1_000_000_u32, word: u16) {
            prop_assert_eq!(said(|text| { text.six(number); }), format!("{number:06}"));
            prop_assert_eq!(said(|text| { text.hex16(word); }), format!("{word:#06x}"));
        }
    }
}
