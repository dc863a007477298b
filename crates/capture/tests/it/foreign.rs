//! Capture files as other programs write them, in either byte order.

/// Bytes of one byte order.
#[derive(Clone, Debug)]
pub struct Writer {
    pub is_big_endian: bool,
    pub bytes: Vec<u8>,
}

/// A packet, and the units of its time since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub interface: u32,
    pub stamp: u64,
    pub original_len: u32,
    pub data: Vec<u8>,
}

impl Writer {
    pub fn new(is_big_endian: bool) -> Self {
        Self {
            is_big_endian,
            bytes: Vec::new(),
        }
    }

    pub fn u16(&mut self, number: u16) -> &mut Self {
        self.number(number.to_be_bytes())
    }

    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.number(number.to_be_bytes())
    }

    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.number(number.to_be_bytes())
    }

    /// A number whose bytes these are, the highest one first.
    fn number<const N: usize>(&mut self, mut bytes: [u8; N]) -> &mut Self {
        if !self.is_big_endian {
            bytes.reverse();
        }
        self.raw(&bytes)
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// The head of pcap.
    pub fn pcap(is_big_endian: bool, magic: u32, link: u32) -> Self {
        let mut this = Self::new(is_big_endian);
        this.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(262_144).u32(link);
        this
    }

    /// A record of pcap; `extra` bytes more in its head.
    pub fn record(&mut self, packet: &Sample, per_second: u64, extra: usize) -> &mut Self {
        self.u32((packet.stamp / per_second) as u32)
            .u32((packet.stamp % per_second) as u32)
            .u32(packet.data.len() as u32)
            .u32(packet.original_len)
            .raw(&vec![0; extra])
            .raw(&packet.data)
    }

    /// A block of pcapng.
    pub fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::new(self.is_big_endian);
        body(&mut inner);
        inner.pad();
        let len = inner.bytes.len() as u32 + 12;
        self.u32(kind).u32(len).raw(&inner.bytes).u32(len)
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub fn section(&mut self) -> &mut Self {
        self.block(0x0A0D_0D0A, |body| {
            body.u32(0x1A2B_3C4D).u16(1).u16(0).u64(u64::MAX);
        })
    }

    pub fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.u16(code).u16(value.len() as u16).raw(value);
        self.pad();
        self
    }

    /// An interface; time in its resolution's units, where one is given.
    pub fn interface(
        &mut self,
        link: u16,
        snap_len: u32,
        name: &str,
        resolution: Option<(u8, u64)>,
    ) -> &mut Self {
        self.block(1, |body| {
            body.u16(link).u16(0).u32(snap_len).option(2, name.as_bytes());
            if let Some((resolution, offset_s)) = resolution {
                let mut offset = Self::new(body.is_big_endian);
                offset.u64(offset_s);
                body.option(9, &[resolution]).option(14, &offset.bytes);
            }
            body.u32(0);
        })
    }

    pub fn enhanced(&mut self, packet: &Sample) -> &mut Self {
        self.block(6, |body| {
            body.u32(packet.interface).stamped(packet);
        })
    }

    pub fn obsolete(&mut self, packet: &Sample, dropped: u16) -> &mut Self {
        self.block(2, |body| {
            body.u16(packet.interface as u16).u16(dropped).stamped(packet);
        })
    }

    pub fn stamped(&mut self, packet: &Sample) -> &mut Self {
        self.u32((packet.stamp >> 32) as u32)
            .u32(packet.stamp as u32)
            .u32(packet.data.len() as u32)
            .u32(packet.original_len)
            .raw(&packet.data);
        self.pad();
        self
    }

    pub fn simple(&mut self, original_len: u32, data: &[u8]) -> &mut Self {
        self.block(3, |body| {
            body.u32(original_len).raw(data);
        })
    }
}
