//! A frame made once and written many times: per packet only probe, flow and checksum are patched.
//!
//! The UDP checksum is never summed on sending. All fields that vary are subtracted from a prepared number
//! that stands for everything else, and one fold of the difference is the checksum, with zero already in its
//! form "all ones": numbers above zero never fold to zero.

use crate::bytes::{put_be16, put_be32, put_be64};
use crate::headers::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use crate::probe::{BurstStamp, LOW_48, PROBE_LEN};
use crate::template_flow::{Flows, Place};
use crate::template_spec::{headers_len, minimum_frame_size};
use crate::{TemplateError, TemplateSpec, checksum, template_build};

/// One line, written as a whole.
const LINE: usize = 64;
/// A multiple of 65535, so zero to the checksum, and above all that is ever subtracted from it.
const ZERO: u64 = 65535 << 40;
/// Flows from which on it pays to look for stretches of them: as many as a burst has packets.
const STRETCH: u32 = 64;

/// A frame ready to be sent over and over.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Template {
    /// The frame's first bytes, zeros after its end.
    line: [u8; LINE],
    /// IPv4 without tags in at most one line: everything at fixed offsets.
    is_plain_line: bool,
    ipv6: bool,
    probe_at: usize,
    /// Lane in the upper 16 bits, room for the sequence below.
    lane: u64,
    /// What the varying fields are subtracted from: stands for all other fields, the ports of flow 0
    /// included.
    udp_base: u64,
    /// As `udp_base`, but without ports.
    udp_portless: u64,
    /// What of the varying sum enters the checksum field: all bits, or none when the NIC completes it.
    patch: u64,
    /// As `udp_base`, for the IPv4 header checksum.
    ip_base: u64,
    flows: Flows,
    bytes: Box<[u8]>,
}

/// What one flow of a template has of its own.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Source port in the upper, destination port in the lower half.
    ports: u32,
    /// Low 32 bits of the source address.
    source_low: u32,
    /// Whether that is another than flow 0's.
    has_moved: bool,
    /// Where it is.
    ip_checksum: u16,
    /// As [`Template::udp_base`], but without ports.
    udp_portless: u64,
}

/// Flows of a template that differ in their source ports only.
#[derive(Clone, Debug)]
pub struct Stretch<'t> {
    template: &'t Template,
    /// The template's first bytes with what these flows have in common.
    line: [u8; LINE],
    /// The present one.
    flow: Flow,
    len: u32,
}

impl Stretch<'_> {
    /// How many flows there are, at first.
    #[inline]
    #[must_use]
    pub const fn flows(&self) -> u32 {
        self.len
    }

    /// Goes on to the flow that is `step` after the present one.
    #[inline]
    pub const fn next(&mut self, step: u32) {
        self.flow.ports = self.flow.ports.wrapping_add(step << 16);
    }

    /// Writes one packet of the present flow: see [`Template::write`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "per packet: the line stays in registers")]
    pub fn write(&self, room: &mut [u8], stamp: &BurstStamp, sequence: u64) {
        let (template, sequence) = (self.template, sequence & LOW_48);
        if !template.is_plain_line {
            return template.write_any(room, stamp, sequence, Some(&self.flow));
        }
        if let Some(to) = room.first_chunk_mut::<LINE>() {
            *to = self.line;
            put_be32(to, 34, self.flow.ports);
            template.write_varying(to, stamp, sequence, Some(&self.flow));
        }
    }
}

impl Flow {
    /// Writes the source address, where it is another than flow 0's, into a plain line.
    #[inline]
    fn write_source(&self, line: &mut [u8; LINE]) {
        if self.has_moved {
            put_be32(line, 26, self.source_low);
            put_be16(line, 24, self.ip_checksum);
        }
    }

    #[inline]
    const fn ports_sum(&self) -> u64 {
        (self.ports >> 16) as u64 + (self.ports & 0xFFFF) as u64
    }
}

impl Template {
    /// Builds the frame, with sequence, time and lag zero.
    pub fn new(spec: &TemplateSpec) -> Result<Self, TemplateError> {
        spec.check()?;
        let ipv6 = spec.dst.is_ipv6();
        let probe_at = headers_len(ipv6, spec.vlans.len());
        let built = template_build::build(spec);
        let flows = Flows::new(spec);
        let udp_portless = ZERO - u64::from(built.udp_sum_portless);
        let mut line = [0; LINE];
        line.iter_mut()
            .zip(&built.bytes)
            .for_each(|(to, from)| *to = *from);
        Ok(Self {
            is_plain_line: !ipv6 && spec.vlans.is_empty() && built.bytes.len() <= LINE,
            line,
            ipv6,
            probe_at,
            lane: u64::from(spec.lane) << 48,
            udp_base: udp_portless - u64::from(spec.src.port()) - u64::from(*spec.dst_ports.start()),
            udp_portless,
            patch: u64::MAX,
            ip_base: ZERO - u64::from(built.ip_sum),
            flows,
            bytes: built.bytes.into_boxed_slice(),
        })
    }

    /// The same frame for a NIC that completes the UDP checksum: the field carries the pseudo header's sum
    /// only.
    #[must_use]
    pub fn with_checksum_offload(mut self) -> Self {
        let pseudo = u64::from(template_build::pseudo_sum(
            &self.bytes,
            self.udp_offset(),
            self.ipv6,
        ));
        self.udp_base = ZERO + pseudo;
        self.udp_portless = ZERO + pseudo;
        self.patch = 0;
        self
    }

    /// Smallest frame in bytes, FCS included, that carries a probe.
    #[must_use]
    pub const fn minimum_frame_size(ipv6: bool, vlans: usize) -> usize {
        minimum_frame_size(ipv6, vlans)
    }

    /// Bytes handed to the driver: the frame without FCS.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that [`Template::write`] needs: the frame, and at least one line.
    #[must_use]
    pub fn room_needed(&self) -> usize {
        self.bytes.len().max(LINE)
    }

    /// The frame with sequence, time and lag zero, for filling buffers in advance.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Offset of the UDP header in the frame.
    #[must_use]
    pub const fn udp_offset(&self) -> usize {
        self.probe_at - UDP_LEN
    }

    /// Bytes of Ethernet header and VLAN tags, as the NIC's offload wants to know.
    #[must_use]
    pub const fn l2_len(&self) -> usize {
        self.udp_offset() - self.l3_len()
    }

    /// Bytes of the IP header, as the NIC's offload wants to know.
    #[must_use]
    pub const fn l3_len(&self) -> usize {
        if self.ipv6 { IPV6_LEN } else { IPV4_LEN }
    }

    /// Whether the frame is IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Number of flows asked for.
    #[must_use]
    pub const fn flows(&self) -> u32 {
        self.flows.count
    }

    /// Flow `number`, which is below [`Template::flows`]: distinct ones differ in ports or source address.
    #[inline]
    #[must_use]
    pub fn flow(&self, number: u32) -> Flow {
        self.flow_at(&self.flows.place(number))
    }

    /// Whether [`Template::stretch`] mostly leads far.
    #[inline]
    #[must_use]
    pub const fn has_stretches(&self) -> bool {
        self.flows.dst_ports == 1 && self.flows.count >= STRETCH
    }

    /// Flow `number`, and the flows that can be reached from it by [`Stretch::next`] with `step`.
    #[inline]
    #[must_use]
    pub fn stretch(&self, number: u32, step: u32) -> Stretch<'_> {
        let place = self.flows.place(number);
        let ports = (place.src_end - place.src_port).min(self.flows.count - number);
        let len = match (self.flows.dst_ports, step) {
            (1, 1) => ports,
            (1, 2..) => (ports - 1) / step + 1,
            _ => 1,
        };
        let flow = self.flow_at(&place);
        let mut line = self.line;
        if self.is_plain_line {
            flow.write_source(&mut line);
        }
        Stretch {
            template: self,
            line,
            flow,
            len,
        }
    }

    #[inline]
    fn flow_at(&self, place: &Place) -> Flow {
        let (source_low, moved) = self.flows.source(place);
        Flow {
            ports: self.flows.ports(place),
            source_low,
            has_moved: moved != 0,
            ip_checksum: if moved == 0 { 0 } else { self.ip_checksum(moved) },
            // What is subtracted grows, or what the NIC adds to.
            udp_portless: if self.patch == 0 {
                self.udp_portless.wrapping_add(moved)
            } else {
                self.udp_portless.wrapping_sub(moved)
            },
        }
    }

    /// Writes one packet of `flow`, of flow 0 where there is none, into `room`; the hot path.
    ///
    /// `room` holds at least [`Template::room_needed`] bytes, else nothing is written. `sequence` counts
    /// modulo 2^48.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "per packet, from a few loops: the template stays in registers"
    )]
    pub fn write(&self, room: &mut [u8], stamp: &BurstStamp, sequence: u64, flow: Option<&Flow>) {
        if self.is_plain_line {
            if let Some(line) = room.first_chunk_mut::<LINE>() {
                self.write_line(line, stamp, sequence & LOW_48, flow);
            }
        } else {
            self.write_any(room, stamp, sequence & LOW_48, flow);
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn write_line(&self, line: &mut [u8; LINE], stamp: &BurstStamp, sequence: u64, flow: Option<&Flow>) {
        *line = self.line;
        if let Some(flow) = flow {
            put_be32(line, 34, flow.ports);
            flow.write_source(line);
        }
        self.write_varying(line, stamp, sequence, flow);
    }

    /// Writes what no two packets have in common.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn write_varying(&self, line: &mut [u8; LINE], stamp: &BurstStamp, sequence: u64, flow: Option<&Flow>) {
        line[45] = stamp.lag;
        // The time's upper two bytes are zeros that the sequence then overwrites.
        put_be64(line, 52, stamp.time_ns);
        put_be64(line, 46, self.lane | sequence);
        put_be16(line, 40, self.udp_checksum(stamp.sum + sequence, flow));
    }

    /// Of what varies from packet to packet, and of the flow.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn udp_checksum(&self, varying: u64, flow: Option<&Flow>) -> u16 {
        let (base, varying) = match flow {
            Some(flow) => (flow.udp_portless, varying + flow.ports_sum()),
            None => (self.udp_base, varying),
        };
        checksum::fold(base.wrapping_sub(varying & self.patch))
    }

    #[inline(never)]
    fn write_any(&self, room: &mut [u8], stamp: &BurstStamp, sequence: u64, flow: Option<&Flow>) {
        let Some(frame) = room.get_mut(..self.bytes.len()) else {
            return;
        };
        frame.copy_from_slice(&self.bytes);
        let Some((headers, payload)) = frame.split_at_mut_checked(self.probe_at) else {
            return;
        };
        let Some(probe) = payload.first_chunk_mut::<PROBE_LEN>() else {
            return;
        };
        probe[3] = stamp.lag;
        put_be64(probe, 10, stamp.time_ns);
        put_be64(probe, 4, self.lane | sequence);
        if let Some(flow) = flow.filter(|flow| flow.has_moved) {
            self.write_source(headers, flow);
        }
        if let Some(udp) = headers.last_chunk_mut::<UDP_LEN>() {
            if let Some(flow) = flow {
                put_be32(udp, 0, flow.ports);
            }
            put_be16(udp, 6, self.udp_checksum(stamp.sum + sequence, flow));
        }
    }

    /// Writes another source address into the headers that end with the UDP header.
    fn write_source(&self, headers: &mut [u8], flow: &Flow) {
        if self.ipv6 {
            if let Some(ip) = headers.last_chunk_mut::<{ IPV6_LEN + UDP_LEN }>() {
                put_be32(ip, 20, flow.source_low);
            }
        } else if let Some(ip) = headers.last_chunk_mut::<{ IPV4_LEN + UDP_LEN }>() {
            put_be32(ip, 12, flow.source_low);
            put_be16(ip, 10, flow.ip_checksum);
        }
    }

    #[inline]
    fn ip_checksum(&self, source_moved: u64) -> u16 {
        // Here zero is an ordinary value, and all ones its unusual form.
        match checksum::fold(self.ip_base.wrapping_sub(source_moved)) {
            0xFFFF => 0,
            value => value,
        }
    }
}
