//! Address prefixes of both families.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and how many of its bits count. Bits beyond are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    is_v6: bool,
    /// IPv4 in the upper 32 bits.
    address: u128,
    len: u8,
}

impl Prefix {
    /// The prefix of this address; `None` if it has not so many bits.
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        let (is_v6, bits) = match address {
            IpAddr::V4(address) => (false, u128::from(address.to_bits()) << 96),
            IpAddr::V6(address) => (true, address.to_bits()),
        };
        (len <= if is_v6 { 128 } else { 32 }).then(|| Self {
            is_v6,
            address: bits & mask(len),
            len,
        })
    }

    /// The prefix of this address, of IPv6 or of IPv4 in the upper 32 bits; of its whole length if `len` is longer.
    #[must_use]
    pub const fn of_bits(address: u128, is_v6: bool, len: u8) -> Self {
        let whole = if is_v6 { 128 } else { 32 };
        let len = if len < whole { len } else { whole };
        Self {
            is_v6,
            address: address & mask(len),
            len,
        }
    }

    /// Whether this address lies in it: of IPv6, or of IPv4 in the upper 32 bits.
    #[inline]
    pub const fn contains(&self, address: u128, is_v6: bool) -> bool {
        self.is_v6 == is_v6 && (address ^ self.address) & mask(self.len) == 0
    }

    /// Whether every address of `other` lies in it.
    pub const fn covers(&self, other: &Self) -> bool {
        self.len <= other.len && self.contains(other.address, other.is_v6)
    }

    /// Whether this address lies in one of these, which are sorted: a few steps for a thousand of them, also where some lie
    /// within others.
    pub fn any_contains(sorted: &[Self], address: u128, is_v6: bool) -> bool {
        let mut bound = Self::of_bits(address, is_v6, 128);
        let mut left = sorted;
        loop {
            // Whatever holds the address has a beginning that is not above it.
            left = &left[..left.partition_point(|prefix| *prefix <= bound)];
            let Some(last) = left.last().filter(|last| last.is_v6 == is_v6) else {
                return false;
            };
            let differ = last.address ^ address;
            if differ & mask(last.len) == 0 {
                return true;
            }
            // Of those before it only what is as short as what both have in common.
            bound = Self::of_bits(address, is_v6, differ.leading_zeros() as u8);
        }
    }

    /// IPv6, else IPv4.
    pub const fn is_v6(&self) -> bool {
        self.is_v6
    }

    /// The address, IPv4 in the upper 32 bits.
    pub const fn address(&self) -> u128 {
        self.address
    }

    /// How many bits count.
    pub const fn bits(&self) -> u8 {
        self.len
    }
}

/// The upper `len` bits.
pub const fn mask(len: u8) -> u128 {
    if len == 0 {
        0
    } else {
        u128::MAX << (128 - len as u32)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, whole) = if self.is_v6 {
            (IpAddr::V6(Ipv6Addr::from_bits(self.address)), 128)
        } else {
            (IpAddr::V4(Ipv4Addr::from_bits((self.address >> 96) as u32)), 32)
        };
        if self.len == whole {
            write!(f, "{address}")
        } else {
            write!(f, "{address}/{}", self.len)
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, len) = text
            .split_once('/')
            .map_or((text, None), |(address, len)| (address, Some(len)));
        let bad =
            || format!("`{text}` is no address or prefix, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32");
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let whole = if address.is_ipv6() { 128 } else { 32 };
        let len = match len {
            Some(len) => len.parse().map_err(|_| bad())?,
            None => whole,
        };
        let prefix =
            Self::new(address, len).ok_or_else(|| format!("`{text}`: a prefix has at most {whole} bits"))?;
        // 10.0.0.1/8 is a slip more often than not.
        if Self::new(address, whole).is_some_and(|exact| exact.address != prefix.address) {
            return Err(format!("`{text}` has bits beyond its prefix; write {prefix}"));
        }
        Ok(prefix)
    }
}
