//! VLAN tags (IEEE 802.1Q, and 802.1ad for the outer one of two).

use thiserror::Error;

/// Tag protocol identifier of a customer tag, the ordinary VLAN.
pub const TPID_CUSTOMER: u16 = 0x8100;
/// Tag protocol identifier of a service tag, the outer one of `QinQ`.
pub const TPID_SERVICE: u16 = 0x88A8;
/// Most tags a frame may carry here.
pub const MAX_VLANS: usize = 2;

/// One VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// [`TPID_CUSTOMER`] or [`TPID_SERVICE`].
    pub tpid: u16,
    /// VLAN identifier, 0 (priority only) to 4094.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub pcp: u8,
}

/// Why a stack of tags cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VlanError {
    /// More tags than [`MAX_VLANS`].
    #[error(
        "{found} VLAN tags asked for, at most {MAX_VLANS} are possible; give one, or an outer and an inner"
    )]
    TooMany {
        /// Tags asked for.
        found: usize,
    },
    /// Neither 802.1Q nor 802.1ad.
    #[error("VLAN tag protocol {tpid:#06x} is unknown; use 0x8100 (VLAN) or 0x88a8 (outer tag of QinQ)")]
    Protocol {
        /// The identifier asked for.
        tpid: u16,
    },
    /// 4095 is reserved, more does not fit.
    #[error("VLAN {id} does not exist; identifiers go from 0 to 4094")]
    Id {
        /// The identifier asked for.
        id: u16,
    },
    /// Three bits.
    #[error("VLAN priority {pcp} does not exist; priorities go from 0 to 7")]
    Priority {
        /// The priority asked for.
        pcp: u8,
    },
}

impl VlanTag {
    /// The tag's four bytes as they follow the MAC addresses.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        let [a, b] = self.tpid.to_be_bytes();
        let [c, d] = ((self.pcp as u16) << 13 | (self.id & 0x0FFF)).to_be_bytes();
        [a, b, c, d]
    }

    /// The tag of these bytes. The bit between priority and identifier (may be dropped first) is left out.
    #[must_use]
    pub const fn from_bytes(bytes: &[u8; 4]) -> Self {
        let [a, b, c, d] = *bytes;
        Self {
            tpid: u16::from_be_bytes([a, b]),
            id: u16::from_be_bytes([c, d]) & 0x0FFF,
            pcp: c >> 5,
        }
    }

    /// Checks number, protocols, identifiers and priorities of a whole stack, outermost first.
    pub fn check(stack: &[Self]) -> Result<(), VlanError> {
        if stack.len() > MAX_VLANS {
            return Err(VlanError::TooMany { found: stack.len() });
        }
        for &Self { tpid, id, pcp } in stack {
            if tpid != TPID_CUSTOMER && tpid != TPID_SERVICE {
                return Err(VlanError::Protocol { tpid });
            }
            if id > 4094 {
                return Err(VlanError::Id { id });
            }
            if pcp > 7 {
                return Err(VlanError::Priority { pcp });
            }
        }
        Ok(())
    }
}
