//! The addresses that name hardware: PCI, `VMBus` and MAC.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A PCI function, `domain:bus:device.function`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PciAddress {
    /// PCI domain; Hyper-V and large servers use more than 0.
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device (slot), 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl FromStr for PciAddress {
    type Err = &'static str;

    /// Reads `0000:3b:00.0`, or `3b:00.0` for domain 0 as lspci prints it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal, such as 0000:3b:00.0";
        let hex = |part: &str, limit: u32| match u32::from_str_radix(part, 16) {
            Ok(number) if number <= limit && part.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(number),
            _ => Err(WANTED),
        };
        let (rest, function) = text.rsplit_once('.').ok_or(WANTED)?;
        let parts: Vec<&str> = rest.split(':').collect();
        let (domain, bus, device) = match parts[..] {
            [domain, bus, device] => (domain, bus, device),
            [bus, device] => ("0", bus, device),
            _ => return Err(WANTED),
        };
        Ok(Self {
            domain: hex(domain, u32::MAX)?,
            bus: hex(bus, 0xff)? as u8,
            device: hex(device, 0x1f)? as u8,
            function: hex(function, 7)? as u8,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

/// A MAC address, printed in lower case with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MacAddress(pub [u8; 6]);

impl FromStr for MacAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "six bytes in hexadecimal, such as 02:00:00:00:00:01";
        let byte = |part: &str| match u8::from_str_radix(part, 16) {
            Ok(byte) if part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()) => Some(byte),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
        let six = bytes.and_then(|bytes| bytes.try_into().ok());
        six.map(Self).ok_or(WANTED)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&bytes.join(":"))
    }
}

/// A device on Hyper-V's `VMBus`, named by its instance UUID in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct VmbusId(String);

impl VmbusId {
    /// The UUID as sysfs spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VmbusId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text
            .trim_start_matches('{')
            .trim_end_matches('}')
            .to_ascii_lowercase();
        let lengths: Vec<usize> = bare.split('-').map(str::len).collect();
        let hex = bare.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
        if lengths == [8, 4, 4, 4, 12] && hex {
            Ok(Self(bare))
        } else {
            Err("a UUID, such as f8615163-0001-1000-2000-6045bd7a8f21")
        }
    }
}

impl fmt::Display for VmbusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

crate::as_text::as_text!(PciAddress, MacAddress, VmbusId);
