//! ARP of IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::bytes::{array, be16, behind};
use crate::text::Text;

const LEN: usize = 28;

#[cold]
pub fn line(text: &mut Text, data: &[u8], at: usize, original_len: u32) {
    text.put("ARP, ");
    match array::<LEN>(data, at) {
        // Ethernet, IPv4, and the lengths of their addresses.
        Some(message) if message[..6] == [0, 1, 8, 0, 6, 4] => message_line(text, message),
        Some(_) => {
            text.put("of another kind");
        }
        None => {
            text.put("[|arp]");
        }
    }
    text.put(", length ").number(behind(original_len, at));
}

fn message_line(text: &mut Text, message: &[u8; LEN]) {
    let address = |at: usize| array::<4>(message, at).map_or(Ipv4Addr::UNSPECIFIED, |a| Ipv4Addr::from(*a));
    let mac = |at: usize| array::<6>(message, at).copied().unwrap_or_default();
    match be16(message, 6) {
        1 => {
            text.put("Request who-has ").v4(address(24));
            if mac(18) != [0; 6] {
                text.put(" (").mac(mac(18)).byte(b')');
            }
            text.put(" tell ").v4(address(14));
        }
        2 => {
            text.put("Reply ").v4(address(14)).put(" is-at ").mac(mac(8));
        }
        other => {
            text.put("operation ").number(other);
        }
    }
}
