//! TCP (RFC 9293 section 3.1): flags, numbers as they are on the wire, options.

use crate::bytes::{array, be16, be32};
use crate::text::Text;

const HEADER: usize = 20;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const URG: u8 = 32;

/// Letters of the flags, the lowest bit first.
const LETTERS: &[u8; 8] = b"FSRP.UEW";

/// Flags as letters: how many, and which.
const FLAGS: [(u8, [u8; 8]); 256] = {
    let mut all = [(0, [0; 8]); 256];
    let mut flags = 0;
    while flags < 256 {
        let (mut len, mut bit) = (0, 0);
        while bit < 8 {
            if flags >> bit & 1 == 1 {
                all[flags].1[len] = LETTERS[bit];
                len += 1;
            }
            bit += 1;
        }
        all[flags].0 = len as u8;
        flags += 1;
    }
    all
};

/// Writes flags as letters, `none` where there are none.
pub fn flags(text: &mut Text, flags: u8) {
    let (len, letters) = FLAGS[usize::from(flags)];
    match len {
        0 => text.put("none"),
        len => text.bytes(&letters[..usize::from(len)]),
    };
}

/// The segment at `at`, of `len` bytes with its header.
#[inline]
pub fn line(text: &mut Text, data: &[u8], at: usize, len: usize) {
    let Some(header) = array::<HEADER>(data, at) else {
        text.put("[|tcp]");
        return;
    };
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < HEADER {
        text.put("TCP, malformed header, length ").number(len);
        return;
    }
    let payload = len.saturating_sub(header_len);
    let set = header[13];
    text.put("Flags [");
    flags(text, set);
    let sequence = be32(header, 4);
    if payload > 0 {
        text.put("], seq ").number(sequence).byte(b':');
        text.number(sequence.wrapping_add(payload as u32));
    } else if set & (SYN | FIN | RST) != 0 {
        text.put("], seq ").number(sequence);
    } else {
        text.byte(b']');
    }
    if set & ACK != 0 {
        text.put(", ack ").number(be32(header, 8));
    }
    text.put(", win ").number(be16(header, 14));
    if set & URG != 0 {
        text.put(", urg ").number(be16(header, 18));
    }
    if header_len > HEADER {
        let end = (at + header_len).min(data.len());
        text.put(", options [");
        options(text, data.get(at + HEADER..end).unwrap_or_default());
        text.byte(b']');
    }
    text.put(", length ").number(payload);
}

fn options(text: &mut Text, mut rest: &[u8]) {
    let mut is_first = true;
    while let Some(&kind) = rest.first() {
        if !is_first {
            text.byte(b',');
        }
        is_first = false;
        // The two of one byte, RFC 9293 section 3.2.
        if kind < 2 {
            text.put(if kind == 0 { "eol" } else { "nop" });
            if kind == 0 {
                return;
            }
            rest = &rest[1..];
            continue;
        }
        let len = rest.get(1).map_or(0, |len| usize::from(*len));
        let Some(value) = rest.get(2..len) else {
            text.put("[|tcp]");
            return;
        };
        option(text, kind, value);
        rest = &rest[len..];
    }
}

#[inline]
fn option(text: &mut Text, kind: u8, value: &[u8]) {
    match (kind, value.len()) {
        (2, 2) => text.put("mss ").number(be16(value, 0)),
        (3, 1) => text.put("wscale ").number(value[0]),
        (4, 0) => text.put("sackOK"),
        (5, len) => {
            text.put("sack ").number(len / 8).byte(b' ');
            for edges in value.chunks_exact(8) {
                text.byte(b'{').number(be32(edges, 0)).byte(b':');
                text.number(be32(edges, 4)).byte(b'}');
            }
            text
        }
        (8, 8) => {
            text.put("TS val ").number(be32(value, 0));
            text.put(" ecr ").number(be32(value, 4))
        }
        _ => text.put("unknown-").number(kind),
    };
}
